"""What a decision will lead to, before it is recorded: always the same lines in the same order."""

from __future__ import annotations

from django.utils.translation import gettext as _

from console import money, when
from console.preview import Link, Preview
from console.screens import effect_facts, saying, told
from console.screens.effect_page import EffectPage
from console.screens.verdict_form import VerdictForm, supports
from recovery.actions.verdicts import weight_of
from recovery.engine.verdicts import Weight
from runs import clock
from runs.states import Strength, VerdictSays


def button_of(page: EffectPage, says: str) -> str:
    """ "Record: the refund happened"."""
    return _("Record: {said}").format(said=saying.said(page.effect, says))


def preview_of(page: EffectPage, says: str, form: VerdictForm) -> Preview:
    """The preview of saying ``says``. Weighed on the evidence that is ticked in ``form``."""
    effect = page.effect
    ticked = form.data.getlist("evidence") if form.is_bound else form.initial.get("evidence", ())
    known = {str(one.pk): one.pk for one in page.says_something}
    weight = weight_of(effect, VerdictSays(says), [known[id] for id in map(str, ticked) if id in known])
    noun, happened = told.noun(effect), says == VerdictSays.HAPPENED
    title = _("Record that this {noun} happened") if happened else _("Record that this {noun} did not happen")
    return Preview(
        title=title.format(noun=noun),
        post_url=f"/effects/{effect.pk}/verdict/",
        button=button_of(page, says),
        leave_url=f"/effects/{effect.pk}/",
        form=form,
        will=_will(weight, page, _happened(page) if happened else _did_not(page)),
        will_not=[_("nothing is sent to {dependency}.").format(dependency=page.dependency)],
        irreversible=[_("Later evidence against it opens a dispute.")],
        based_on=_based_on(page),
        slot=f"/effects/{effect.pk}/?part=slot&seen={effect.version}",
        live=(effect.workspace_id, "effect", effect.pk),
        subject=Link(f"/effects/{effect.pk}/", page.sentence),
        fields="verdict/fields.html",
        extra={"page": page},
    )


def _will(weight: Weight, page: EffectPage, then: str) -> list[str]:
    if not weight.second:
        return [then]
    line = _(
        "first a second person is asked to confirm this ({why}). "
        "Until then the outcome stays unknown and nothing goes on."
    )
    return [line.format(why=why_second(weight, page)), _("Once confirmed: {then}").format(then=then)]


def why_second(weight: Weight, page: EffectPage) -> str:
    """Why one person is not enough."""
    facts, dependency = weight.facts, page.dependency
    if weight.code == "word_only":
        return _("it rests on a person's word alone")
    if weight.code == "evidence_against":
        return _("there is evidence against it")
    if weight.code in ("not_found_too_few", "not_found_too_close"):
        return _("{n} of 2 checks that count found nothing at {dependency}").format(
            n=min(int(facts.get("counting", 0)), 1), dependency=dependency
        )
    return _("the ticked evidence does not carry it")


def _happened(page: EffectPage) -> str:
    result = next(
        (one.detail["item"]["id"] for one in supports(page, VerdictSays.HAPPENED) if _id_in(one.detail)), None
    )
    facts = {"noun": told.noun(page.effect), "result": result, "step": told.step_title(page.effect.run)}
    if result:
        line = _("the {noun} becomes Happened, with {result} as its result. The run goes on with: {step}.")
    else:
        line = _("the {noun} becomes Happened. The run goes on with: {step}.")
    return line.format(**facts)


def _id_in(detail: dict[str, object]) -> bool:
    item = detail.get("item")
    return isinstance(item, dict) and "id" in item


def _did_not(page: EffectPage) -> str:
    effect, stake = page.effect, page.effect.stake or {}
    key = f"{effect.key}/{effect.generation + 1}"
    line = _(
        "the {noun} becomes Did not happen. The run may ask again as a new request, with key {key}. "
        "If {dependency} did make the first one, it happens twice."
    )
    if stake.get("kind") == "money" and stake.get("direction") == "out":
        line = _(
            "the {noun} becomes Did not happen. The run may ask again as a new request, with key {key}. "
            "If {dependency} did make the first one, {amount} is paid twice."
        )
    amount = money.at_stake(stake).rpartition(" ")[0]
    return line.format(noun=told.noun(effect), key=key, dependency=page.dependency, amount=amount)


def _based_on(page: EffectPage) -> list[str]:
    lines = [
        _("version {n} of this effect, as of {at}").format(
            n=page.effect.version, at=when.stamp(clock.now(), clock.now())
        )
    ]
    return lines + [
        f"{effect_facts.label(one)} ({told.short(one.pk)})"
        for one in page.detail.evidence
        if one.strength != Strength.NONE
    ]
