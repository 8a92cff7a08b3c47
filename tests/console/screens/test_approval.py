"""``/approvals/{id}/``: exactly this is signed, by whom it may be, and what became of it."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from recovery.contract import canonical
from runs.models import Approval, Effect, Group, Signature
from runs.states import ApprovalState
from tests.console.screens.posting import fields, press
from tests.console.screens.scene import Scene
from tests.console.screens.seen import text

MOST_QUERIES = 20


def _url(approval: Approval) -> str:
    return f"/approvals/{approval.pk}/"


def _decide(scene: Scene, letter: str, approval: Approval, decision: str = "sign", **typed: Any) -> Any:
    client = scene.client(letter, htmx=True)
    given = {"reason": f"reason of {letter}", **typed}
    return press(client, client.get(_url(approval)), f"{_url(approval)}decision/", decision=decision, **given)


def test_the_page_shows_exactly_the_bytes(scene: Scene) -> None:
    """Walk b, 1: title, count, clocks, check code, the stored bytes unparsed, two buttons apart after them."""
    approval = scene.asked()
    answer = scene.client("b").get(_url(approval))
    page, raw = text(answer), answer.content.decode()
    target = approval.effect.target
    assert f"Sign: refund USD 1,250.00 on charge {target} State: Signatures needed" in page
    assert "0 of 2 signatures (payments-approvers)" in page and "You can sign" in page
    assert re.search(r"Sign by \d\d:\d\d \( in 7 h 59 min \) Must be sent within 1 h of the last signature", page)
    assert (
        f"Sends USD 1,250.00 from account payments to {target}. Cannot be reversed: money leaves the account." in page
    )
    assert approval.body in page and f"Check code {approval.check_code}" in page
    assert canonical.approval_digest(approval.fields) == approval.digest
    assert raw.index("Bytes that will be sent") < raw.index('value="sign"') < raw.index('value="reject"')
    assert page.index("Sign: send USD 1,250.00") < page.index("Reject: do not send it")
    assert "When it was asked" not in page  # nothing was read when it was asked: the line is absent


def test_control_characters_in_the_bytes_are_named(scene: Scene) -> None:
    """A direction mark would show other bytes than those that are signed (trap 7)."""
    approval = scene.asked()
    odd = approval.body.replace('"USD"', '"U\u202eSD"')
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_approval SET body = %s WHERE id = %s", [odd, approval.pk])
    page = text(scene.client("b").get(_url(approval)))
    assert "[U+202E]" in page and "\u202e" not in page


def test_the_first_of_two_signs(scene: Scene) -> None:
    """Walk b, 4: the result's words; nothing is sent on one signature; what was seen is kept (D7)."""
    approval = scene.asked()
    done = _decide(scene, "b", approval)
    assert re.match(
        r"Signed at \d\d:\d\d:\d\d\. 1 of 2\. One more signature is needed by \d\d:\d\d\. "
        r"You can withdraw yours until it is sent\.",
        text(done),
    )
    scene.drain()
    assert scene.applied(approval.effect) == 0
    saw = Signature.objects.get(approval=approval).saw
    assert saw["sentence"].startswith(f"Refund USD 1,250.00 on charge {approval.effect.target}. Sends USD 1,250.00")
    assert (saw["language"], saw["digest"], saw["body"]) == ("en", approval.digest, approval.body)
    page = text(scene.client("b").get(_url(approval)))
    assert "You signed this" in page and "Sign: send" not in page


def test_the_second_signature_sends_what_was_shown(scene: Scene) -> None:
    """Walk b, 6 and 7: used once; the ledger has one refund, of the bytes on the page."""
    approval = scene.asked()
    _decide(scene, "b", approval)
    page = scene.client("c").get(_url(approval))
    assert "Approver B signed revision 1 at" in text(page)
    assert re.search(r"<details><summary>Reason \(folded until you decide\)", page.content.decode())
    assert re.match(r"Signed at [\d:]+\. 2 of 2\. Sending now\.", text(_decide(scene, "c", approval)))
    scene.drain()
    after = text(scene.client("c", htmx=True).get(f"{_url(approval)}?part=after"))
    assert re.fullmatch(
        r"Used [\d:]+ Sent [\d:]+, try 1 Happened at [\d:]+: re_\w+ Used\. This request cannot be used again\.", after
    )
    ledger = [one for one in scene.sandbox.ledger() if one["applied"] and approval.body in one["bodies"]]
    assert [one["applied"] for one in ledger] == [1]
    unfolded = scene.client("c").get(_url(approval)).content.decode()
    assert "reason of b" in unfolded and "<details open><summary>Reason<" in unfolded


def test_a_request_that_changed_is_not_signed(scene: Scene) -> None:
    """Walk b, 2 to 4: the slot speaks, the form keeps its own digest, 409 without a password, the reason kept."""
    old = scene.asked()
    client = scene.client("b", htmx=True)
    opened = client.get(_url(old))
    slot = re.search(r'hx-get="([^"]*part=slot[^"]*)"', opened.content.decode())[1].replace("&amp;", "&")  # type: ignore[index]
    assert client.get(slot).content == b""
    new = scene.amend(old)
    assert re.fullmatch(
        r"Changed at [\d:]+: what you see is no longer current\. See what changed\.", text(client.get(slot))
    )
    tail = str(old.run_id).replace("-", "")[-8:]
    answer = press(client, opened, f"{_url(old)}decision/", decision="sign", reason="order A-1 is off", step_up=False)
    page = text(answer)
    assert answer.status_code == 409 and "Confirm it is you" not in page
    assert re.match(
        r"Not signed\. Revision 2 replaced this while you were reading \([\d:]+, "
        rf"run orders\.cancel {tail[:4]}-{tail[4:]} on order\.changed\)\. Nothing was sent\. Your reason is kept\.",
        page,
    )
    assert "~ changed amount 125000 120500 (USD 1,250.00 -> USD 1,205.00)" in page
    assert "order A-1 is off" in page and "Read revision 2" in page
    assert scene.refusals() == ["superseded"] and not Signature.objects.exists()
    reread = client.get(_url(new))
    assert "Changed since you last looked" in text(reread) and new.check_code != old.check_code
    assert fields(reread, f"{_url(new)}decision/")["reason"] == ["order A-1 is off"]
    assert "Changed since revision 1" in text(client.get(_url(new)))


def test_the_requester_cannot_sign(scene: Scene) -> None:
    """Walk b, 5: why and who can; no button; by hand 403 and a line in the history."""
    approval = scene.asked()
    _decide(scene, "b", approval)
    page = text(scene.client("a").get(_url(approval)))
    assert "You cannot sign: you started this run. Approver C can." in page
    assert "Sign: send" not in page and "Reject: do not send it" not in page
    given = {"action": str(uuid4()), "digest": approval.digest, "reason": "x", "decision": "sign"}
    answer = scene.client("a", htmx=True).post(f"{_url(approval)}decision/", given)
    assert answer.status_code == 403 and "You cannot sign: you started this run." in text(answer)
    assert scene.refusals() == ["own_request"] and Signature.objects.count() == 1


def test_an_auditor_and_somebody_outside_the_group_are_told_why(scene: Scene) -> None:
    """Seen but not allowed; the group and its people are named."""
    approval = scene.asked()
    assert "You can see this but not" in text(scene.client("d").get(_url(approval)))
    Group.objects.get(workspace=scene.here, slug="payments-approvers").members.remove(scene.people["c"])
    page = text(scene.client("c").get(_url(approval)))
    assert "You can see this but not sign. Payments approvers can: Approver B." in page


def test_reason_step_up_and_repeat(scene: Scene) -> None:
    """Heavy: a reason, the password of now; the same press again counts once (invariant 15)."""
    approval = scene.asked()
    client = scene.client("b", htmx=True)
    opened, address = client.get(_url(approval)), f"{_url(approval)}decision/"
    bare = press(client, opened, address, decision="sign", step_up=False)
    assert bare.status_code == 422 and "Say why" in text(bare)
    asked = press(client, opened, address, decision="sign", reason="ok", step_up=False)
    assert asked.status_code == 403 and "Confirm it is you" in text(asked)
    assert "Then this goes on: Sign: send USD 1,250.00" in text(asked) and not Signature.objects.exists()
    assert re.match(r"Signed at", text(press(client, asked, address)))
    again = press(client, asked, address, step_up=False)
    assert re.match(r"Already signed at [\d:]+ by you\. Nothing was done twice\.", text(again))
    assert Signature.objects.count() == 1


def test_looking_never_signs(scene: Scene) -> None:
    """GET of every address of the request, by a previewer of links: nothing is written (and POST needs the token)."""
    approval = scene.asked()
    client = scene.client("b")
    for address in ("", "decision/", "withdrawal/", "renewal/", "?part=after"):
        client.get(f"{_url(approval)}{address}")
    approval.refresh_from_db()
    assert approval.state == ApprovalState.PENDING and not Signature.objects.exists()


def test_one_reject_ends_it(scene: Scene) -> None:
    """R8: it is not sent, the run goes on with that."""
    approval = scene.asked()
    _decide(scene, "b", approval)
    page = text(_decide(scene, "c", approval, "reject"))
    assert re.match(r"Rejected at [\d:]+\. It will not be sent\. The run goes on to step Tell the customer\.", page)
    scene.drain()
    assert scene.applied(approval.effect) == 0
    page = text(scene.client("b").get(_url(approval)))
    assert re.search(r"Rejected by Approver C [\d:]+\. It will not be sent\.", page) and "Sign: send" not in page


def test_expired_nothing_is_sent_and_it_can_be_asked_for_again(scene: Scene) -> None:
    """After ``approve_by`` signing is over, on the open page too; on-call asks again, a new revision."""
    approval = scene.asked()
    client = scene.client("b", htmx=True)
    opened = client.get(_url(approval))
    scene.pass_time(hours=8, minutes=1)
    said = text(client.get(f"{_url(approval)}?part=slot&seen=pending"))
    assert re.fullmatch(r"Expired at .*\d\d:\d\d\. Signing is no longer possible\.", said)
    late = press(client, opened, f"{_url(approval)}decision/", decision="sign", reason="x", step_up=False)
    assert late.status_code == 409 and "The signatures ran out at" in text(late)
    assert scene.applied(approval.effect) == 0
    assert "You can see this but not ask again." in text(scene.client("c").get(_url(approval)))
    oncall = scene.client("a", htmx=True)
    page = text(oncall.get(_url(approval)))
    assert re.search(r"Expired [\w :]+, not sent\. Ask again", page)
    asked = press(
        oncall,
        oncall.get(f"{_url(approval)}renewal/"),
        f"{_url(approval)}renewal/",
        reason="still wanted",
        step_up=False,
    )
    assert re.match(r"Asked at [\w :]+\. Not signed yet: 2 signatures are needed by", text(asked))
    new = Approval.objects.get(effect=approval.effect_id, revision=2)
    assert "You cannot sign: you started this run." in text(oncall.get(_url(new)))
    assert "Replaced by revision 2" in text(oncall.get(_url(approval)))


def test_a_signature_is_taken_back_until_it_was_used(scene: Scene) -> None:
    """R9: withdrawn it counts no more; afterwards it is too late, and the page says what can be done."""
    approval = scene.asked()
    _decide(scene, "b", approval)
    client, address = scene.client("b", htmx=True), f"{_url(approval)}withdrawal/"
    opened = client.get(address)
    assert "Withdraw your signature" in text(opened)
    assert press(client, opened, address, step_up=False).status_code == 422
    back = press(client, opened, address, reason="wrong order", step_up=False)
    assert re.match(r"Withdrawn at [\d:]+\. 0 of 2\. Event #\d+\.", text(back))
    again = press(client, opened, address, reason="wrong order", step_up=False)
    assert "Nothing was done twice." in text(again)
    assert "withdrew it at" in text(client.get(_url(approval)))
    assert "You have no signature on this request." in text(client.get(address))
    for letter in ("b", "c"):
        _decide(scene, letter, approval)
    scene.drain()
    late = client.get(address)
    assert late.status_code == 409
    assert re.match(
        r"Too late to withdraw: it was sent at [\d:]+\. What can be done now: plan a compensation\.", text(late)
    )


def test_nobody_can_sign_is_said(scene: Scene) -> None:
    """R14: a rule that nobody can meet is visible, not silent."""
    Group.objects.get(workspace=scene.here, slug="payments-approvers").members.remove(scene.people["c"])
    approval = scene.asked()
    page = text(scene.client("b").get(_url(approval)))
    assert "Nobody can sign: it needs 2 of payments-approvers, and 1 may sign." in page
    assert "Sign: send" not in page


def test_a_signed_request_that_is_not_used_yet_says_until_when(scene: Scene) -> None:
    """Granted: the second clock runs; it can still be withdrawn."""
    approval = scene.asked()
    for letter in ("b", "c"):
        _decide(scene, letter, approval)
    page = text(scene.client("b").get(_url(approval)))
    assert re.search(r"Signed, not used yet\. It must be sent by [\d:]+\.", page) and "Withdraw..." in page


@pytest.mark.parametrize("signed", [0, 1])
def test_a_page_makes_few_queries(scene: Scene, signed: int) -> None:
    """With a revision before it and with signatures."""
    approval = scene.amend(scene.asked())
    for letter in "bc"[:signed]:
        _decide(scene, letter, approval)
    client = scene.client("c")
    client.get(_url(approval))
    with CaptureQueriesContext(connection) as seen:
        assert client.get(_url(approval)).status_code == 200
    assert len(seen) <= MOST_QUERIES, "\n".join(one["sql"][:150] for one in seen)


def test_parts_hold_no_button_and_the_decision_is_never_fetched_again(scene: Scene) -> None:
    """D1: what is fetched again has no form; the region with form and digest is skipped by morphing."""
    approval = scene.asked()
    client = scene.client("b", htmx=True)
    for part in ("head", "gate", "signatures", "after"):
        page = client.get(f"{_url(approval)}?part={part}").content.decode()
        assert "<form" not in page and "<button" not in page and "<html" not in page
    whole = scene.client("b").get(_url(approval)).content.decode()
    region = re.search(r'<section class="action"[^>]*>', whole)
    assert region and "hx-morph-skip" in region[0] and "hx-get" not in region[0]
    assert Effect.objects.get(pk=approval.effect_id).state == "awaiting_approval"


def test_without_javascript_a_signature_is_answered_by_a_page(scene: Scene) -> None:
    """The plain path: recorded, said, and the person stays signed in though the step-up gave them a new session."""
    approval, client = scene.asked(), scene.client("b")
    done = press(client, client.get(_url(approval)), f"{_url(approval)}decision/", decision="sign", reason="read it")
    assert done.status_code == 200 and "1 of 2. One more signature is needed by" in text(done)
    assert "You signed this" in text(client.get(_url(approval)))
