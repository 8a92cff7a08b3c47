"""What a person can do, as URL nouns."""

from django.urls import URLPattern, URLResolver, path

from console.screens.account import account
from console.screens.auth import SignIn, SignOut, language

urlpatterns: list[URLPattern | URLResolver] = [
    path("sign-in/", SignIn.as_view(), name="sign-in"),
    path("sign-out/", SignOut.as_view(), name="sign-out"),
    path("language/", language, name="language"),
    path("account/", account, name="account"),
]
