"""A stand-in for ReFrame: what the test calls, and no more. A class is made, its hooks are called in order, and its
performance variables are held to its references."""

import sys
import types


class RunOnlyRegressionTest:
    def __init__(self, stagedir, **variables):
        self.stagedir = str(stagedir)
        for name, value in variables.items():
            if not isinstance(getattr(type(self), name, None), (str, float)):
                raise AttributeError(f"no variable {name}")
            setattr(self, name, value)
        self.hooks("init")

    def hooks(self, stage):
        for own in vars(type(self)).values():
            if getattr(own, "stage", None) == stage:
                own(self)

    def command(self):
        self.hooks("run")
        return " ".join([self.executable, *self.executable_opts])

    def sanity(self):
        (check,) = [own for own in vars(type(self)).values() if getattr(own, "is_sanity", False)]
        return check(self)

    def performance(self):
        """The variables with their units, and the names of those out of their bounds."""
        self.hooks("performance")
        values = {name: (function(), function.unit) for name, function in self.perf_variables.items()}
        limits = self.reference["*"]
        wrong = []
        for name, (reference, lower, upper, unit) in limits.items():
            value, own = values[name]
            assert own == unit, name
            # As ReFrame has it: bounds are shares, the lower one from -1 to 0.
            assert lower is None or -1 <= lower <= 0
            below = lower is not None and value < reference * (1 + lower)
            above = upper is not None and value > reference * (1 + upper)
            wrong += [name] if below or above else []
        return values, wrong


def hook(stage):
    def mark(function):
        function.stage = stage
        return function

    return mark


def sanity_function(function):
    function.is_sanity = True
    return function


def variable(kind, value):
    assert isinstance(value, kind)
    return value


def make_performance_function(function, unit, *arguments):
    def call():
        return function(*arguments)

    call.unit = unit
    return call


def install():
    reframe, utility, sanity, core, builtins = (
        types.ModuleType(name)
        for name in ("reframe", "reframe.utility", "reframe.utility.sanity", "reframe.core", "reframe.core.builtins")
    )
    reframe.simple_test = lambda cls: cls
    reframe.RunOnlyRegressionTest = RunOnlyRegressionTest
    reframe.utility, utility.sanity = utility, sanity
    sanity.make_performance_function = make_performance_function
    builtins.run_after = builtins.run_before = hook
    builtins.sanity_function, builtins.variable = sanity_function, variable
    for module in (reframe, utility, sanity, core, builtins):
        sys.modules[module.__name__] = module
