# SPDX-License-Identifier: Apache-2.0
"""What help() and type checkers read agrees with what is compiled, and says units."""
import inspect
import os
import re
import unittest

import penstock
import penstock._core
import penstock.simulation
import penstock.torch

STUB = os.path.join(os.path.dirname(__file__), "..", "..", "src", "python", "penstock", "_core.pyi")
OWN_LINES = 2  # the licence and the line that says what wrote it
NUMBERS = re.compile(r"\b(int|float|Number)\b")
UNITS = re.compile(r"second|byte|token|sequence|device|micro-batch|stage|slice|share|character|rank|GPU|finding|layer|dtype|"
                   r"\[stages\]", re.IGNORECASE)


def public_modules():
    return [penstock, penstock.torch, penstock.simulation]


def public_objects():
    """(name, object) of each function, class, method and property that users see."""
    for module in public_modules():
        for name in getattr(module, "__all__", vars(module)):
            value = getattr(module, name)
            if name.startswith("_") or (module is not penstock and getattr(value, "__module__", "") != module.__name__):
                continue
            if inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value
            elif inspect.isclass(value) and not issubclass(value, Exception):
                yield f"{module.__name__}.{name}", value
                for member, of_class in vars(value).items():
                    if not member.startswith("_") and (inspect.isfunction(of_class) or isinstance(of_class, (property, classmethod))):
                        yield f"{module.__name__}.{name}.{member}", getattr(of_class, "__func__", of_class)


def parameters(function):
    return [parameter for parameter in inspect.signature(function).parameters.values()
            if parameter.name not in ("self", "cls")]


class Stubs(unittest.TestCase):
    def test_the_stub_of_the_compiled_module_is_what_nanobind_writes(self):
        from nanobind.stubgen import StubGen

        generator = StubGen(penstock._core)
        generator.put(penstock._core)
        with open(STUB) as file:
            lines = file.read().split("\n")[OWN_LINES:]
        self.assertEqual(generator.get().strip().split("\n"), "\n".join(lines).strip().split("\n"),
                         "write it anew: python3 -m nanobind.stubgen -m penstock._core -o FILE, below its first two lines")

    def test_everything_public_is_described(self):
        found = 0
        for name, value in public_objects():
            with self.subTest(name):
                self.assertTrue(inspect.getdoc(value), "has no docstring")
            found += 1
        self.assertGreater(found, 60)

    def test_every_number_is_named_and_the_description_says_a_unit_or_shape(self):
        numbers = 0
        for name, value in public_objects():
            if isinstance(value, property) or inspect.isclass(value):
                continue
            taken = [parameter.name for parameter in parameters(value) if NUMBERS.search(str(parameter.annotation))]
            text = inspect.getdoc(value) or ""
            for parameter in taken:
                with self.subTest(name, parameter=parameter):
                    self.assertRegex(text, rf"\b{parameter}\b|`{parameter}`", "is not named")
                    self.assertRegex(text, UNITS)
                numbers += 1
        self.assertGreater(numbers, 30)

    def test_every_parameter_and_result_has_a_type(self):
        for name, value in public_objects():
            function = value.fget if isinstance(value, property) else value
            if inspect.isclass(function):
                continue
            with self.subTest(name):
                signature = inspect.signature(function)
                self.assertIsNot(signature.return_annotation, inspect.Signature.empty, "of the result")
                for parameter in parameters(function):
                    self.assertIsNot(parameter.annotation, inspect.Parameter.empty, parameter.name)

    def test_what_python_calls_is_in_the_stub(self):
        folder = os.path.dirname(penstock.__file__)
        with open(STUB) as file:
            stub = file.read()
        for module in os.listdir(folder):
            if module.endswith(".py"):
                with open(os.path.join(folder, module)) as file:
                    for name in re.findall(r"\b_core\.(\w+)", file.read()):
                        self.assertTrue(re.search(rf"(def|class) {name}\b|{name} as {name}", stub), f"{module}: {name}")
