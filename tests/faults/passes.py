"""Which points each scene passes when nothing is disturbed. A test holds this table against what really happens."""

from __future__ import annotations

from typing import Final

_TABLE: Final[dict[str, str]] = {
    "order": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_outcome advance.before_step advance.leased checkpoint.after_load
        checkpoint.before_load checkpoint.before_seal dispatch.after_claim dispatch.after_outcome
        dispatch.before_claim dispatch.before_outcome reconcile.after_ask reconcile.after_commit
        reconcile.before_ask reconcile.before_commit send.after send.before sweep.after_pass sweep.after_ring
        sweep.before_pass sweep.before_ring worker.after_enlist worker.before_enlist
    """,
    "signed": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_outcome advance.before_step advance.leased checkpoint.after_load
        checkpoint.before_load checkpoint.before_seal dispatch.after_claim dispatch.after_outcome
        dispatch.before_claim dispatch.before_outcome reconcile.after_ask reconcile.after_commit
        reconcile.before_ask reconcile.before_commit send.after send.before sweep.after_pass sweep.after_ring
        sweep.before_pass sweep.before_ring worker.after_enlist worker.before_enlist
    """,
    "cards": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_outcome advance.before_step advance.leased checkpoint.after_load
        checkpoint.before_load checkpoint.before_seal reconcile.after_ask reconcile.after_commit
        reconcile.before_ask reconcile.before_commit send.after send.before sweep.after_pass sweep.after_ring
        sweep.before_pass sweep.before_ring worker.after_enlist worker.before_enlist
    """,
    "notice": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_outcome advance.before_step advance.leased checkpoint.after_load
        checkpoint.before_load checkpoint.before_seal send.after send.after_claim send.before
        send.before_claim sweep.after_pass sweep.after_ring sweep.before_pass sweep.before_ring
        worker.after_enlist worker.before_enlist
    """,
    "two": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_outcome advance.before_step advance.leased checkpoint.after_load
        checkpoint.before_load checkpoint.before_seal link.after_commit link.before_commit reconcile.after_ask
        reconcile.after_commit reconcile.before_ask reconcile.before_commit send.after send.before
        sweep.after_pass sweep.after_ring sweep.before_pass sweep.before_ring worker.after_enlist
        worker.before_enlist
    """,
    "cancelled": """
        advance.after_commit advance.before_commit advance.before_lease advance.leased cancel.before_settle
        sweep.after_pass sweep.after_ring sweep.before_pass sweep.before_ring worker.after_enlist
        worker.before_enlist
    """,
    "overtaken": """
        act.after_commit act.before_commit act.before_write advance.after_checks advance.after_commit
        advance.after_flush advance.after_step advance.before_commit advance.before_flush advance.before_lease
        advance.before_outcome advance.before_step advance.leased cancel.before_settle checkpoint.after_load
        checkpoint.before_load checkpoint.before_seal send.after send.before sweep.after_pass sweep.after_ring
        sweep.before_pass sweep.before_ring worker.after_enlist worker.before_enlist
    """,
    "late": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_flush advance.before_lease advance.before_outcome advance.before_step advance.leased
        checkpoint.after_load checkpoint.before_load checkpoint.before_seal late.after_commit
        late.before_commit lose.after_commit lose.before_commit reconcile.after_settle reconcile.before_settle
        release.after_commit release.before_commit send.after send.before sweep.after_pass sweep.after_ring
        sweep.before_pass sweep.before_ring worker.after_enlist worker.before_enlist
    """,
    "late signed": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_outcome advance.before_step advance.leased checkpoint.after_load
        checkpoint.before_load checkpoint.before_seal dispatch.after_claim dispatch.after_outcome
        dispatch.before_claim dispatch.before_outcome lose.after_commit lose.before_commit reconcile.after_ask
        reconcile.after_commit reconcile.after_settle reconcile.before_ask reconcile.before_commit
        reconcile.before_settle send.after send.before sweep.after_pass sweep.after_ring sweep.before_pass
        sweep.before_ring worker.after_enlist worker.before_enlist
    """,
    "broken": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_outcome advance.before_step advance.leased checkpoint.after_load
        checkpoint.before_load checkpoint.before_seal release.after_commit release.before_commit send.after
        send.before sweep.after_pass sweep.after_ring sweep.before_pass sweep.before_ring worker.after_enlist
        worker.before_enlist
    """,
    "run out": """
        request.after_commit request.before_commit request.before_write sweep.after_pass sweep.before_pass
    """,
    "nobody left": """
        request.after_commit request.before_commit request.before_write sweep.after_pass sweep.before_pass
    """,
    "signer left": """
        dispatch.after_hold dispatch.before_hold sweep.after_pass sweep.after_ring sweep.before_pass
        sweep.before_ring
    """,
    "computed": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_step advance.leased call.after_outcome call.answered call.before_outcome
        call.committed checkpoint.after_load checkpoint.before_load checkpoint.before_seal sweep.after_pass
        sweep.after_ring sweep.before_pass sweep.before_ring worker.after_enlist worker.before_enlist
    """,
    "accept": """
        accept.after_commit accept.before_commit accept.before_write bell.after_publish bell.before_publish
        checkpoint.before_seal
    """,
    "sign": """
        act.after_commit act.before_commit act.before_write bell.after_publish bell.before_publish
    """,
    "decide": """
        act.after_commit act.before_commit act.before_write
    """,
    "cancel": """
        act.after_commit act.before_commit act.before_write bell.after_publish bell.before_publish
    """,
    "change": """
        act.after_commit act.before_commit act.before_write bell.after_publish bell.before_publish
    """,
    "family": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_outcome advance.before_step advance.leased
        checkpoint.after_load checkpoint.before_load checkpoint.before_seal child.after_commit
        child.before_commit child.before_write send.after send.before sweep.after_pass sweep.after_ring
        sweep.before_pass sweep.before_ring wake.after_commit wake.before_commit worker.after_enlist
        worker.before_enlist
    """,
    "family cancelled": """
        advance.after_commit advance.before_commit advance.before_lease advance.leased
        cancel.before_settle sweep.after_pass sweep.after_ring sweep.before_pass sweep.before_ring
        tell.after_commit tell.before_commit wake.after_commit wake.before_commit worker.after_enlist
        worker.before_enlist
    """,
    "family paused": """
        advance.after_commit advance.before_commit advance.before_lease advance.leased
        pause.before_settle sweep.after_pass sweep.after_ring sweep.before_pass sweep.before_ring
        tell.after_commit tell.before_commit wake.after_commit wake.before_commit worker.after_enlist
        worker.before_enlist
    """,
    "pause": """
        act.after_commit act.before_commit act.before_write bell.after_publish bell.before_publish
    """,
    "looked at": """
        advance.after_checks advance.after_commit advance.before_commit advance.before_lease
        advance.leased ask.after_commit ask.before_commit checkpoint.after_load checkpoint.before_load
        sweep.after_pass sweep.after_ring sweep.before_pass sweep.before_ring worker.after_enlist
        worker.before_enlist
    """,
    "go on": """
        act.after_commit act.before_commit act.before_write bell.after_publish bell.before_publish
    """,
    "older version": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_step advance.leased checkpoint.after_load
        checkpoint.before_load checkpoint.before_seal migrate.after_commit migrate.before_commit
        sweep.after_pass sweep.after_ring sweep.before_pass sweep.before_ring worker.after_enlist
        worker.before_enlist
    """,
    "quarantined": """
        advance.after_checks advance.after_commit advance.before_commit advance.before_lease
        advance.before_step advance.leased checkpoint.after_load checkpoint.before_load
        quarantine.after_commit quarantine.before_commit sweep.after_pass sweep.after_ring
        sweep.before_pass sweep.before_ring worker.after_enlist worker.before_enlist
    """,
    "release": """
        act.after_commit act.before_commit act.before_write bell.after_publish bell.before_publish
    """,
    "thought long": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_step advance.leased call.after_claim call.after_outcome
        call.answered call.before_claim call.before_outcome call.committed checkpoint.after_load
        checkpoint.before_load checkpoint.before_seal sweep.after_pass sweep.after_ring
        sweep.before_pass sweep.before_ring worker.after_enlist worker.before_enlist
    """,
    "held": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_step advance.leased checkpoint.after_load
        checkpoint.before_load checkpoint.before_seal sweep.after_pass sweep.after_ring
        sweep.before_pass sweep.before_ring waiting.after_commit waiting.before_commit
        worker.after_enlist worker.before_enlist
    """,
    "drain": """
        act.after_commit act.before_commit act.before_write
    """,
    "draining": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_step advance.leased checkpoint.after_load
        checkpoint.before_load checkpoint.before_seal dispatch.after_claim dispatch.after_outcome
        dispatch.before_claim dispatch.before_outcome drain.after_commit drain.before_commit send.after
        send.before sweep.after_pass sweep.after_ring sweep.before_pass sweep.before_ring
        worker.after_enlist worker.before_enlist
    """,
    "turned away": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_outcome advance.before_step advance.leased
        breaker.after_commit breaker.before_commit checkpoint.after_load checkpoint.before_load
        checkpoint.before_seal dispatch.after_claim dispatch.after_outcome dispatch.before_claim
        dispatch.before_outcome send.after send.before sweep.after_pass sweep.after_ring
        sweep.before_pass sweep.before_ring worker.after_enlist worker.before_enlist
    """,
    "heard": """
        bell.after_publish bell.before_publish callback.after_commit callback.before_commit
    """,
    "set aside": """
        callback.after_commit callback.before_commit
    """,
    "told": """
        advance.after_checks advance.after_commit advance.after_step advance.before_commit
        advance.before_lease advance.before_step advance.leased checkpoint.after_load
        checkpoint.before_load checkpoint.before_seal notify.after_outcome notify.after_send
        notify.after_take notify.before_outcome notify.before_send notify.before_take notify.made
        sweep.after_pass sweep.after_ring sweep.before_pass sweep.before_ring worker.after_enlist
        worker.before_enlist
    """,
    "restored": """
        doubt.after_commit doubt.before_commit epoch.after_commit epoch.before_commit epoch.before_write
        listing.after_commit listing.before_commit look.after_commit look.before_commit mark.after_write
        mark.before_write reconcile.after_ask reconcile.after_commit reconcile.after_settle
        reconcile.before_ask reconcile.before_commit reconcile.before_settle sweep.after_pass
        sweep.after_ring sweep.before_pass sweep.before_ring swept.after_commit swept.before_commit
        void.after_commit void.before_commit
    """,
    "mended": """
        advance.after_checks advance.after_commit advance.after_flush advance.after_step
        advance.before_commit advance.before_flush advance.before_lease advance.before_outcome
        advance.before_step advance.leased checkpoint.after_load checkpoint.before_load
        checkpoint.before_seal compensate.begun dispatch.after_claim dispatch.after_outcome
        dispatch.before_claim dispatch.before_outcome mend.before_look mend.before_turn
        mend.before_verify plan.after_accept plan.after_commit plan.before_accept plan.before_commit
        reconcile.after_ask reconcile.after_commit reconcile.before_ask reconcile.before_commit
        send.after send.before sweep.after_pass sweep.after_ring sweep.before_pass sweep.before_ring
        worker.after_enlist worker.before_enlist
    """,
}

PASSES: Final = {scene: frozenset(text.split()) for scene, text in _TABLE.items()}
