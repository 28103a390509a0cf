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

    def test_the_parameters_of_a_cell_have_types_values_and_help(self):
        cases = [
            ('let n = 4; // how many', ('n', 'i32', '4', 'how many')),
            ('let mut share: f32 = 0.5;', ('share', 'f32', '0.5', '')),
            ('let big = 1_000u64;', ('big', 'u64', '1_000u64', '')),
            ('let rate = 1e-3;', ('rate', 'f64', '1e-3', '')),
            ('let deep = false;', ('deep', 'bool', 'false', '')),
            ('let name = String::from("a; // \\"b\\"");', ('name', 'String', 'String::from("a; // \\"b\\"")', '')),
            ('let path = r#"a";b"#;', ('path', '&str', 'r#"a";b"#', '')),
            ("let mark = ';';", ('mark', 'char', "';'", '')),
            ('let sizes = vec![\n  1, // least\n  2,\n]; // sizes', ('sizes', 'Vec<i32>', 'vec![\n  1, \n  2,\n]', 'sizes')),
            ('let names: Vec<String> = Vec::new();', ('names', 'Vec<String>', 'Vec::new()', '')),
            ('let none = None::<u8>;', ('none', 'Option<u8>', 'None::<u8>', '')),
            ('let device = Device::best()?;', ('device', 'None', 'Device::best()?', '')),
        ]
        for source, expected in cases:
            self.assertEqual([tuple(found) for found in RustTranslator.inspect({'source': source})], [expected])
        whole = RustTranslator.inspect({'source': '// Sizes.\n' + '\n'.join(source for source, _ in cases)})
        self.assertEqual([tuple(found) for found in whole], [expected for _, expected in cases])

    def test_a_cell_that_is_no_list_of_parameters_has_none(self):
        for source in ['', '// let a = 1;', 'use std::fmt;\nprintln!("let a = 1;");', 'let a', 'let (a, b) = (1, 2);']:
            self.assertEqual(RustTranslator.inspect({'source': source}), [])


if __name__ == '__main__':
    unittest.main()
