"""Reading the record: the lists and pages that screens and API share.

Functions take a workspace's id, or a person and an id, and never cross a workspace (invariant 14). Each makes
a fixed number of queries, and each list has the index that its comment in ``runs/models`` names.
"""

from runs.queries.details import (
    ApprovalDetail,
    EffectDetail,
    EventsPage,
    RunDetail,
    actions_of,
    approval_detail,
    effect_detail,
    effects_page,
    events_page,
    run_detail,
)
from runs.queries.inbox import (
    Checking,
    InboxCounts,
    InboxPage,
    InboxRow,
    being_checked,
    being_checked_page,
    inbox_counts,
    inbox_page,
)
from runs.queries.lists import RunRow, effect_counts, run_types, runs_count, runs_page
from runs.queries.paging import (
    MOST_COUNTED,
    MOST_ROWS,
    BadCursor,
    Count,
    Cursor,
    Page,
    decode,
    encode,
)
from runs.queries.sight import (
    seen_by,
    visible_approval,
    visible_effect,
    visible_review,
    visible_run,
    visible_verdict,
    visible_workspace,
)

__all__ = [
    "MOST_COUNTED",
    "MOST_ROWS",
    "ApprovalDetail",
    "BadCursor",
    "Checking",
    "Count",
    "Cursor",
    "EffectDetail",
    "EventsPage",
    "InboxCounts",
    "InboxPage",
    "InboxRow",
    "Page",
    "RunDetail",
    "RunRow",
    "actions_of",
    "approval_detail",
    "being_checked",
    "being_checked_page",
    "decode",
    "effect_counts",
    "effect_detail",
    "effects_page",
    "encode",
    "events_page",
    "inbox_counts",
    "inbox_page",
    "run_detail",
    "run_types",
    "runs_count",
    "runs_page",
    "seen_by",
    "visible_approval",
    "visible_effect",
    "visible_review",
    "visible_run",
    "visible_verdict",
    "visible_workspace",
]
