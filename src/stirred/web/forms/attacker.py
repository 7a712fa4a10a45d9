"""What an attacker is supposed to know and to want: asked for by assessments and frontiers."""

from dataclasses import dataclass

from stirred.census import Schema
from stirred.errors import InputError, did_you_mean
from stirred.web.forms.fields import variables_of
from stirred.web.forms.values import Form, last_text

DEFAULT_VARIABLES = (("sex", "age"), ("race", "hispanic"))  # the defaults of the command: known, and wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerForm:
    """The records that are attacked, what is known of them, and what is wanted; empty: as the command has it."""

    record: str = ""
    known: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()

    @staticmethod
    def propose(schema: Schema) -> "AttackerForm":
        """Propose an attacker: empty where persons have the usual variables, else two variables of one type."""
        there = {variable.name for record in schema.records for variable in record.variables}
        if all(there & set(names) for names in DEFAULT_VARIABLES):
            return AttackerForm()
        for record in schema.records:
            own = (record.id, record.household, record.household_from, *schema.spine)
            names = [
                variable.name
                for variable in record.variables
                if variable.name not in own and variable.level_count is not None
            ]
            if len(names) > 1:
                return AttackerForm(record=record.name, known=(names[0],), secret=(names[-1],))
        return AttackerForm()

    @staticmethod
    def of(form: Form, schema: Schema) -> "AttackerForm":
        """Read the attacker of a form; refuse names that the codebook does not have."""
        record = last_text(form, "record")
        if record and record not in schema.record_types:
            raise _make_name_error(record, schema.record_types)
        names = [row.name for row in variables_of(schema) if not row.name.startswith("-")]
        found = [last_text(form, field).replace(",", " ").split() for field in ("known", "secret")]
        for name in (*found[0], *found[1]):
            if name not in names:
                raise _make_name_error(name, names)
        return AttackerForm(record=record, known=tuple(found[0]), secret=tuple(found[1]))

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words of a command."""
        record = ("--record", self.record) if self.record else ()
        known = ("--known", *self.known) if self.known else ()
        return (*record, *known, *(("--secret", *self.secret) if self.secret else ()))

    @property
    def python(self) -> str:
        """Return the same in Python; empty where nothing was chosen.

        >>> AttackerForm(known=("size",)).python
        "DoubtSettings(known=('size',))"
        """
        chosen = {"record_type": self.record, "known": self.known, "secret": self.secret}
        told = ", ".join(f"{name}={value!r}" for name, value in chosen.items() if value)
        return f"DoubtSettings({told})" if told else ""


def _make_name_error(name: str, names: list[str] | tuple[str, ...]) -> InputError:
    return InputError(
        "the attacker is asked about something that the codebook does not have",
        why="records and variables are named as in the codebook",
        fix=did_you_mean(name, names),
    )
