"""Workspaces, people, groups, and where the role permissions are kept."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models
from django.utils.translation import gettext_lazy as _
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from runs.models.base import Row, new_id


class Environment(models.TextChoices):
    PRODUCTION = "PRODUCTION"
    STAGING = "STAGING"
    SANDBOX = "SANDBOX"


class Workspace(models.Model):
    """The tenant: everything belongs to exactly one. Its row is also the head of the chain for what has no run."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=200)
    environment = models.CharField(max_length=12, choices=Environment)
    head_seq = models.BigIntegerField(default=0)
    head_hash = models.CharField(max_length=64, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        permissions: ClassVar = [
            ("see", "See runs, effects, approvals and the inbox"),
            ("claim", "Claim and release inbox items"),
            ("check", "Check with a dependency, look again"),
            ("cancel", "Cancel runs"),
            ("decide", "Decide an unknown outcome"),
            ("sign", "Sign or reject a request"),
            ("confirm", "Confirm another person's decision"),
            ("audit", "Read the audit trail"),
            ("drill", "Rehearse faults"),
            ("administer", "Manage people, tokens and rules"),
            ("override", "Break glass: send without signatures, end a run by force"),
            ("start", "Start runs and send signals"),
            ("reveal", "Look at a sealed field"),
        ]

    def __str__(self) -> str:
        return self.slug


class WorkspaceUserPermission(UserObjectPermissionBase):
    """Who may do what in a workspace, by a direct foreign key (django-guardian)."""

    content_object = models.ForeignKey(Workspace, on_delete=models.CASCADE)

    class Meta(UserObjectPermissionBase.Meta):
        pass


class WorkspaceGroupPermission(GroupObjectPermissionBase):
    """The same for Django's own groups; Recourse grants to people only, guardian wants the pair."""

    content_object = models.ForeignKey(Workspace, on_delete=models.CASCADE)

    class Meta(GroupObjectPermissionBase.Meta):
        pass


class PersonManager(BaseUserManager["Person"]):
    """Makes people; the e-mail address is what they sign in with."""

    def create_user(self, email: str, name: str, password: str | None = None, **fields: Any) -> Person:
        """A new person. ``password=None`` makes an account that cannot sign in by password."""
        person = self.model(email=self.normalize_email(email).lower(), name=name, **fields)
        person.set_password(password)
        person.save(using=self._db)
        return person

    def get_by_natural_key(self, username: str | None) -> Person:
        return self.get(email=(username or "").lower())


class Person(AbstractBaseUser, PermissionsMixin):
    """The user model. ``owner`` says whose account it is: two accounts of one owner never sign for each other (R4)."""

    class Theme(models.TextChoices):
        SYSTEM = "system", _("as the device")
        LIGHT = "light", _("light")
        DARK = "dark", _("dark")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=200)
    owner = models.CharField(max_length=200, blank=True, default="")
    language = models.CharField(max_length=12, default="en")
    zone = models.CharField(max_length=64, default="UTC")
    theme = models.CharField(max_length=8, choices=Theme, default=Theme.SYSTEM)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar = ["name"]

    objects = PersonManager()

    def __str__(self) -> str:
        return self.name

    @property
    def owner_id(self) -> str:
        """Whose account this is; an account without a named owner is its own."""
        return self.owner or str(self.pk)


class Group(Row):
    """A named set of people of one workspace; contracts name it (``payments-approvers``)."""

    slug = models.SlugField(max_length=80)
    name = models.CharField(max_length=200)
    members = models.ManyToManyField(Person, related_name="recourse_groups", blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "slug"], name="group_slug_once"),
            models.UniqueConstraint(fields=["workspace", "id"], name="group_workspace_id"),
        ]

    def __str__(self) -> str:
        return self.slug


class ApiToken(Row):
    """A hashed, expiring token of a person, with scopes; it can do nothing heavy."""

    person = models.ForeignKey(Person, on_delete=models.CASCADE, related_name="tokens")
    label = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.label


class FieldKey(models.Model):
    """A workspace's key for sealed fields, itself sealed: ``wrapped``, by the key whose id is ``key``."""

    workspace = models.OneToOneField(Workspace, on_delete=models.PROTECT, primary_key=True, related_name="+")
    wrapped = models.BinaryField()
    key = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"field key of {self.workspace_id}"


__all__ = [
    "ApiToken",
    "Environment",
    "FieldKey",
    "Group",
    "Person",
    "Workspace",
    "WorkspaceGroupPermission",
    "WorkspaceUserPermission",
]
