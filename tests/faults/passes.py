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
        advance.before_lease advance.before_step advance.leased call.answered call.committed
        checkpoint.after_load checkpoint.before_load checkpoint.before_seal sweep.after_pass sweep.after_ring
        sweep.before_pass sweep.before_ring worker.after_enlist worker.before_enlist
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
}

PASSES: Final = {scene: frozenset(text.split()) for scene, text in _TABLE.items()}
