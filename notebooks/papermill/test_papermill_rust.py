"""The translator, in the form of papermill's own tests."""

import unittest

from papermill.exceptions import PapermillException
from papermill.translators import translate_parameters
from papermill_rust import RustTranslator


class Parameters(unittest.TestCase):
    def test_values_are_written_as_rust_writes_them(self):
        cases = [
            ('a "b"\n\\c', 'String::from("a \\"b\\"\\n\\\\c")'),
            ('héllo', 'String::from("héllo")'),
            (12, '12'),
            (-(2**40), '-1099511627776i64'),
            (0.5, '0.5f64'),
            (1e300, '1e+300f64'),
            (True, 'true'),
            (None, 'None::<String>'),
            ([1, 2], 'vec![1, 2]'),
            ({'a': 1}, 'std::collections::HashMap::from([(String::from("a"), 1)])'),
        ]
        for value, expected in cases:
            self.assertEqual(RustTranslator.translate(value), expected)

    def test_items_of_several_types_are_refused(self):
        with self.assertRaises(PapermillException):
            RustTranslator.translate([1, 'a'])

    def test_a_notebook_in_rust_finds_the_translator_by_its_language(self):
        code = translate_parameters('syncscope', 'rust', {'n': 4}, 'Parameters')
        self.assertEqual(code, '// Parameters\nlet n = 4;\n')


if __name__ == '__main__':
    unittest.main()
