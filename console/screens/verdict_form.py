"""The form in which a person says what happened: on ticked evidence, or on somebody's word."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.forms import VersionForm
from console.pills import STRENGTHS
from console.screens import effect_facts
from console.screens.effect_page import EffectPage
from recovery.engine.verdicts import SAID
from runs.models import Evidence
from runs.states import Claim, EvidenceKind, VerdictSays

OFFERED = (VerdictSays.HAPPENED, VerdictSays.DID_NOT_HAPPEN)
"""What can be said here; "in part" needs an operation with items, and none has them."""


class VerdictForm(VersionForm):
    """``says`` on ``evidence`` (ids) and, instead or beside it, a person's word: what, by whom, when.

    ``known``: how many pieces of evidence the page showed, so that a refusal can say what came since.
    """

    says = forms.ChoiceField(choices=[(one, one) for one in OFFERED], widget=forms.HiddenInput)
    known = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput)
    evidence = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Evidence it rests on"),
        coerce=UUID,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    statement = forms.CharField(
        label=gettext_lazy("What was said"),
        max_length=2000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off"}),
    )
    said_by = forms.CharField(label=gettext_lazy("By whom"), max_length=200, required=False)
    said_when = forms.CharField(label=gettext_lazy("When"), max_length=100, required=False)

    def __init__(self, *args: Any, page: EffectPage, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.page = page
        self.fields["evidence"].choices = [(str(one.pk), choice(one)) for one in page.says_something]  # type: ignore[attr-defined]

    @classmethod
    def about(cls, page: EffectPage, says: str, **kept: Any) -> VerdictForm:
        """A new form on what the page shows now; ``kept`` is what was typed before a refusal."""
        ticked = [str(one.pk) for one in supports(page, says)]
        shows = {"action": uuid4(), "version": page.effect.version, "known": len(page.detail.evidence)}
        return cls(initial={"evidence": ticked, "says": says, **kept, **shows}, page=page)

    def anew(self, page: EffectPage) -> VerdictForm:
        """After a refusal: what was typed, on what the page shows now."""
        kept = ("evidence", "statement", "said_by", "said_when", "reason")
        return self.about(page, self.cleaned_data["says"], **{name: self.cleaned_data[name] for name in kept})

    def clean(self) -> dict[str, Any]:
        """At least one piece of evidence or a whole statement: no word is taken without a name and a time."""
        given = super().clean() or {}
        words = [given.get(name, "") for name in ("statement", "said_by", "said_when")]
        if any(words):
            for name in ("statement", "said_by", "said_when"):
                if not given.get(name):
                    self.add_error(name, _("Not recorded. Say what was said, by whom and when."))
        elif not given.get("evidence") and "evidence" not in self.errors:
            self.add_error("evidence" if self.page.says_something else "statement", self._needed())
        return given

    def _needed(self) -> str:
        if self.page.no_way:
            return _("Not recorded. A decision needs at least one piece of evidence: say who told you what, and when.")
        line = _(
            "Not recorded. A decision needs at least one piece of evidence. Check with {dependency} or attach one."
        )
        return line.format(dependency=self.page.dependency)

    @property
    def word(self) -> str:
        """The statement as it is kept: what was said, by whom, when."""
        data = self.cleaned_data
        if not data.get("statement"):
            return ""
        return f"{data['statement']}\n{data['said_by']}, {data['said_when']}"


def supports(page: EffectPage, says: str) -> list[Evidence]:
    """The machine evidence that is ticked beforehand: what claims the same."""
    wanted = {Claim.HAPPENED} if says == VerdictSays.HAPPENED else {SAID[says]}
    rows = [one for one in page.says_something if one.kind != EvidenceKind.STATEMENT and one.claim in wanted]
    return rows[-1:] if says == VerdictSays.HAPPENED else rows


def choice(one: Evidence) -> str:
    """ "Readback 03:13:20: Agrees, not proof"."""
    return f"{effect_facts.label(one)}: {STRENGTHS[one.strength].words}"
