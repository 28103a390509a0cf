"""Which function measures which rows.

A function is declared with the identifiers of its rows and the parameters that it understands. It is called once for each
set of parameters in the plan and returns its cases by identifier, or the reason why there is none as an exception. Rows of one
function are sampled in turn where they agree in all parameters but those that the declaration names as `together`.
"""

from dataclasses import dataclass, field


class NotApplicable(Exception):
    """A row has no meaning in PyTorch."""


class Skipped(Exception):
    """A row could be measured, but not on this machine."""


class LeftOut(Exception):
    """A row is another system's own: it is not in the answer."""


def attempt(make):
    """The case that `make` makes; what it raises takes no other row of the group with it, and is returned."""
    try:
        return make()
    except Exception as absent:
        return absent


@dataclass(frozen=True)
class Recipe:
    """How a few rows are measured. `recorded` ones run last, since a profiler that is attached changes times. Long work of the host
    alone needs no `warmup`."""

    make: object
    ids: tuple
    parameters: frozenset
    together: frozenset
    recorded: bool
    warmup: bool = True


RECIPES = {}


def produces(*ids, parameters=(), together=(), recorded=False, warmup=True):
    """Declares the rows that a function measures."""

    def declare(make):
        recipe = Recipe(make, ids, frozenset(parameters), frozenset(together), recorded, warmup)
        for name in ids:
            if name in RECIPES:
                raise ValueError(f"two functions measure `{name}`")
            RECIPES[name] = recipe
        return make

    return declare


class Wanted:
    """One set of parameters, and the rows of the plan that have it."""

    def __init__(self, parameters, rows):
        self.parameters, self.rows = parameters, rows

    def __getitem__(self, name):
        try:
            return self.parameters[name]
        except KeyError:
            raise ValueError(f"the plan's row has no parameter `{name}`") from None

    def get(self, name, otherwise):
        return self.parameters.get(name, otherwise)

    def iterations(self, name, otherwise=1):
        """By how many iterations the row `name` is divided."""
        stated = next((row.iterations for row in self.rows if row.id == name), 1)
        return stated if stated > 1 else otherwise


@dataclass
class Group:
    """Rows that are sampled in turn."""

    recipe: Recipe
    rows: list = field(default_factory=list)

    @property
    def title(self):
        ids = dict.fromkeys(row.id for row in self.rows)
        shared = set.intersection(*(set(row.parameters.items()) for row in self.rows))
        words = ", ".join(f"{name} {value}" for name, value in sorted(shared))
        return ", ".join(ids) + (f" ({words})" if words else "")

    def wanted(self):
        """The sets of parameters, each with its rows."""
        sets = {}
        for row in self.rows:
            sets.setdefault(frozenset(row.parameters.items()), []).append(row)
        return [Wanted(rows[0].parameters, rows) for rows in sets.values()]


def divide(rows, recipes=None):
    """The groups of the rows that are measured here, and the reason for each row that cannot be, by its key.

    Rows that no function measures, and rows that are computed, are in neither.
    """
    recipes = RECIPES if recipes is None else recipes
    groups, refused = {}, {}
    for row in rows:
        recipe = recipes.get(row.id)
        if recipe is None or row.clock is None:
            continue
        unknown = sorted(set(row.parameters) - recipe.parameters)
        if unknown:
            refused[row.key] = f"the script for PyTorch does not know the parameter `{unknown[0]}` of this row"
            continue
        apart = frozenset((name, value) for name, value in row.parameters.items() if name not in recipe.together)
        groups.setdefault((recipe.ids, apart), Group(recipe)).rows.append(row)
    return list(groups.values()), refused
