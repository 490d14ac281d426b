# SPDX-License-Identifier: Apache-2.0
"""Schedules of pipeline training: drawn, checked, simulated; and the best plan for a cluster.

    schedule = penstock.schedule("slimpipe", p=4, m=2, n=8)
    schedule.check()                       # []: legal
    schedule.simulate(transfer=0.1).makespan

The numbers are those of the program `penstock`, to the last digit. Times are in seconds and sizes in bytes unless a name
says otherwise. Wrong input raises InputError (a ValueError), a question whose answer is no NoAnswer; both with the
program's texts. A file that cannot be written is a RunError. Importing needs neither NumPy nor anything else; columns and
tables need NumPy when they are asked for.
"""
from ._core import InputError, NoAnswer, RunError
from .costs import measured
from .plans import Candidate, Hardware, Plan, plan
from .report import Report
from .schedules import Action, Finding, Schedule, catalogue, schedule
from .simulation import Simulation
from .tables import Table
from .trainers import Explanation, explain

__version__ = "0.1.0"
__all__ = ["Action", "Candidate", "Explanation", "Finding", "Hardware", "InputError", "NoAnswer", "Plan", "Report", "RunError",
           "Schedule", "Simulation", "Table", "catalogue", "explain", "measured", "plan", "schedule"]

for _error in (InputError, NoAnswer, RunError):
    _error.__module__ = "penstock"
del _error
