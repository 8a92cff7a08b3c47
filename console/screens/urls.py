"""What a person can do, as URL nouns."""

from django.urls import URLPattern, URLResolver, path

from console.screens import claims, inbox, lookup, run, runs
from console.screens.account import account
from console.screens.actions import action
from console.screens.approval import approval
from console.screens.auth import SignIn, SignOut, language
from console.screens.cancellation import cancellation
from console.screens.check import readback
from console.screens.confirmation import confirmation
from console.screens.effect import after, effect
from console.screens.renewal import renewal
from console.screens.restore import restore
from console.screens.signing import decision
from console.screens.verdict import verdict
from console.screens.withdrawal import withdrawal

urlpatterns: list[URLPattern | URLResolver] = [
    path("sign-in/", SignIn.as_view(), name="sign-in"),
    path("sign-out/", SignOut.as_view(), name="sign-out"),
    path("language/", language, name="language"),
    path("account/", account, name="account"),
    path("", lookup.to_list, name="home"),
    path("inbox/", lookup.to_list, {"name": "inbox"}, name="last-inbox"),
    path("inbox/<uuid:id>/", lookup.item, name="item"),
    path("runs/", lookup.to_list, {"name": "runs"}, name="last-runs"),
    path("w/<slug:slug>/inbox/", inbox.inbox, name="inbox"),
    path("w/<slug:slug>/inbox/news/", inbox.news, name="inbox-news"),
    path("w/<slug:slug>/inbox/count/", inbox.count, name="inbox-count"),
    path("reviews/<uuid:id>/row/", claims.row, name="review-row"),
    path("reviews/<uuid:id>/claim/", claims.claim, name="claim"),
    path("reviews/<uuid:id>/release/", claims.release, name="release"),
    path("w/<slug:slug>/runs/", runs.runs, name="runs"),
    path("w/<slug:slug>/runs/news/", runs.news, name="runs-news"),
    path("runs/<uuid:id>/", run.run, name="run"),
    path("runs/<uuid:id>/row/", runs.row, name="run-row"),
    path("runs/<uuid:id>/parts/", run.parts, name="run-parts"),
    path("runs/<uuid:id>/newer/", run.newer, name="run-newer"),
    path("runs/<uuid:id>/changed/", run.changed, name="run-changed"),
    path("runs/<uuid:id>/chain/", run.chain, name="run-chain"),
    path("runs/<uuid:id>/look/", run.look, name="look"),
    path("runs/<uuid:id>/cancellation/", cancellation, name="cancellation"),
    path("actions/<uuid:id>/", action, name="action"),
    path("effects/<uuid:id>/", effect, name="effect"),
    path("effects/<uuid:id>/after/", after, name="effect-after"),
    path("effects/<uuid:id>/readback/", readback, name="readback"),
    path("effects/<uuid:id>/verdict/", verdict, name="verdict"),
    path("verdicts/<uuid:id>/confirmation/", confirmation, name="confirmation"),
    path("approvals/<uuid:id>/", approval, name="approval"),
    path("approvals/<uuid:id>/decision/", decision, name="decision"),
    path("approvals/<uuid:id>/withdrawal/", withdrawal, name="withdrawal"),
    path("approvals/<uuid:id>/renewal/", renewal, name="renewal"),
    path("restores/<uuid:id>/", restore, name="restore"),
]
