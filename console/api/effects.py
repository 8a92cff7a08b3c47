"""``runs/{id}/effects`` and ``effects/{id}``: what a run changes outside, and everything said about it."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from console.api import schema
from console.api.auth import person_of, within
from console.api.base import Endpoint, told
from console.api.pagination import Query
from console.api.shapes import EffectShort, EffectWhole, Paged
from runs import queries


class Effects(Paged):
    """A page of effects, in the order they were asked for."""

    items: list[EffectShort]


class RunEffects(Endpoint):
    """The effects of a run."""

    needs: ClassVar[dict[str, tuple[str, ...]]] = {"GET": ("runs:read",)}

    @schema.reads(Effects, "List the effects of a run", paged=True)
    def get(self, request: Request, run: UUID) -> Response:
        """In the order they were asked for."""
        query = Query(request)
        found = queries.visible_run(person_of(request), run, within(request))
        page = queries.effects_page(found, cursor=query.cursor, limit=query.limit)
        items = [EffectShort.of(effect) for effect in page.items]
        return told(Effects(items=items, next=page.next, previous=page.previous))


class OneEffect(Endpoint):
    """An effect."""

    needs: ClassVar[dict[str, tuple[str, ...]]] = {"GET": ("runs:read",)}

    @schema.reads(EffectWhole, "Read an effect")
    def get(self, request: Request, effect: UUID) -> Response:
        """With its attempts, evidence, approvals and verdicts."""
        Query(request, paged=False)
        return told(EffectWhole.whole(queries.effect_detail(person_of(request), effect, within=within(request))))
