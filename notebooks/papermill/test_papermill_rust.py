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

    def test_a_value_has_the_type_that_the_parameter_of_the_notebook_has(self):
        cases = [
            ('let size: usize = 64;', 128, 'let size: usize = 128;'),
            ('let seed = 7u64;', 2**40, f'let seed: u64 = {2**40};'),
            ('let share: f32 = 0.5;', 0.25, 'let share: f32 = 0.25f32;'),
            ('let share = 0.5;', 1, 'let share: f64 = 1.0f64;'),
            ('let none: f32 = 0.0;', float('inf'), 'let none: f32 = f32::INFINITY;'),
            ('let name = "a";', 'b', 'let name: &str = "b";'),
            ('let name = String::new();', 'b', 'let name: String = String::from("b");'),
            ('let sizes: Vec<usize> = vec![1];', [2, 3], 'let sizes: Vec<usize> = vec![2, 3];'),
            ('let sizes = Vec::<u8>::new();', [], 'let sizes: Vec<u8> = vec![];'),
            ('let limit: Option<f32> = None;', 2, 'let limit: Option<f32> = Some(2.0f32);'),
            ('let limit = None::<u8>;', None, 'let limit: Option<u8> = None;'),
            ('let deep = false;', True, 'let deep: bool = true;'),
            ('let deep = true;', 'false', 'let deep: bool = false;'),
            ('let name = String::new();', 7, 'let name: String = String::from("7");'),
            ("let mark = 'a';", "'", "let mark: char = '\\'';"),
            ("let mark: char = 'a';", 7, "let mark: char = '7';"),
            ("let marks: Vec<char> = vec![];", ['é', '\n'], "let marks: Vec<char> = vec!['é', '\\n'];"),
            ('let mut n = 1u16;', 5, 'let mut n: u16 = 5;'),
            ('let limit = Some(4);', 9, 'let limit: Option<i32> = Some(9);'),
            ('let mask = 0xffu8;', 16, 'let mask: u8 = 16;'),
            ('let most = f32::MAX;', 2, 'let most: f32 = 2.0f32;'),
            ('let n = 10;', 3_000_000_000, 'let n = 3000000000i64;'),
            ('let pair: (i32, f64) = (0, 0.0);', [1, 2], 'let pair: (i32, f64) = (1, 2.0f64);'),
            ('let pair: [f32; 2] = [0.0; 2];', [3, 4.5], 'let pair: [f32; 2] = [3.0f32, 4.5f32];'),
            ('let list: &[(u8, Vec<i32>)] = &[];', [[1, [2]]], 'let list: &[(u8, Vec<i32>)] = &[(1, vec![2])];'),
            ('let of: HashMap<String, f32> = HashMap::new();', {'a': 1},
             'let of: HashMap<String, f32> = std::collections::HashMap::from([(String::from("a"), 1.0f32)]);'),
            ('let of: HashMap<u8, u8> = HashMap::new();', {}, 'let of: HashMap<u8, u8> = std::collections::HashMap::from([]);'),
            ('let other = Device::best()?;', 'cpu:0', 'let other = String::from("cpu:0");'),
        ]
        for source, value, expected in cases:
            name = RustTranslator.inspect({'source': source})[0].name
            self.assertEqual(RustTranslator.codify({name: value}), f'// Parameters\n{expected}\n')

    def test_the_types_of_one_notebook_are_not_those_of_the_next(self):
        RustTranslator.inspect({'source': 'let size: usize = 64;'})
        self.assertIn('size: usize', RustTranslator.codify({'size': 1}))
        self.assertEqual(RustTranslator.codify({'size': 1}), '// Parameters\nlet size = 1;\n')

    def test_a_cell_that_is_no_list_of_parameters_has_none(self):
        for source in ['', '// let a = 1;', 'use std::fmt;\nprintln!("let a = 1;");', 'let a', 'let (a, b) = (1, 2);']:
            self.assertEqual(RustTranslator.inspect({'source': source}), [])


if __name__ == '__main__':
    unittest.main()
