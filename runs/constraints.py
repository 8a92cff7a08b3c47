"""Database constraints that Django does not have."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.ddl_references import Statement


class SameWorkspace(models.BaseConstraint):
    """A foreign key that includes the workspace: ``(workspace, field)`` must exist in the target table.

    The target needs ``unique (workspace, id)``. A row of one workspace can then never point into another
    (invariant 14), whatever the application does. Declare the plain ForeignKey with ``db_constraint=False``:
    this one carries it. NULL in ``field`` is allowed where the field allows it.
    """

    def __init__(self, *, field: str, name: str) -> None:
        super().__init__(name=name)
        self.field = field

    def _sql(self, model: type[models.Model], editor: BaseDatabaseSchemaEditor) -> str:
        field = model._meta.get_field(self.field)
        assert isinstance(field, models.ForeignKey) and field.column is not None
        target = field.related_model
        assert isinstance(target, type)
        quote = editor.quote_name
        return (
            f"ALTER TABLE {quote(model._meta.db_table)} ADD CONSTRAINT {quote(self.name)} "
            f'FOREIGN KEY ("workspace_id", {quote(field.column)}) '
            f'REFERENCES {quote(target._meta.db_table)} ("workspace_id", "id") DEFERRABLE INITIALLY DEFERRED'
        )

    def constraint_sql(self, model: type[models.Model] | None, schema_editor: BaseDatabaseSchemaEditor | None) -> Any:
        return self.create_sql(model, schema_editor)

    def create_sql(self, model: type[models.Model] | None, schema_editor: BaseDatabaseSchemaEditor | None) -> Any:
        assert model is not None and schema_editor is not None
        # The target's table or its unique pair may not exist yet: run it at the end of the migration.
        schema_editor.deferred_sql.append(Statement("%(sql)s", sql=self._sql(model, schema_editor)))
        return None

    def remove_sql(self, model: type[models.Model] | None, schema_editor: BaseDatabaseSchemaEditor | None) -> Any:
        assert model is not None and schema_editor is not None
        quote = schema_editor.quote_name
        return Statement(
            "%(sql)s",
            sql=f"ALTER TABLE {quote(model._meta.db_table)} DROP CONSTRAINT {quote(self.name)}",
        )

    def validate(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to validate in Python: the record is written by SQL and the database refuses."""

    def deconstruct(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        path, args, kwargs = super().deconstruct()
        kwargs["field"] = self.field
        return path, tuple(args), kwargs

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SameWorkspace):
            return self.name == other.name and self.field == other.field
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]
