"""Parameters of papermill for notebooks in Rust.

`RustTranslator` has the form of the translators in `papermill/translators.py`, where it may move as it is.
"""

from papermill.engines import NBClientEngine
from papermill.exceptions import PapermillException
from papermill.translators import Translator, papermill_translators


class RustTranslator(Translator):
    @classmethod
    def translate_escaped_str(cls, str_val):
        """A string literal: what has an escape in Rust, and all other characters as they are."""
        escapes = {'\\': '\\\\', '"': '\\"', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\0': '\\0'}
        return '"' + ''.join(escapes.get(letter, letter) for letter in str(str_val)) + '"'

    @classmethod
    def translate_str(cls, val):
        return f'String::from({cls.translate_escaped_str(val)})'

    @classmethod
    def translate_none(cls, val):
        return 'None::<String>'

    @classmethod
    def translate_int(cls, val):
        # Rust takes a literal without a type for an i32.
        return f'{val}' if -(2**31) <= val < 2**31 else f'{val}i64' if -(2**63) <= val < 2**63 else f'{val}i128'

    @classmethod
    def translate_float(cls, val):
        if val != val:
            return 'f64::NAN'
        if val in (float('inf'), float('-inf')):
            return 'f64::INFINITY' if val > 0 else 'f64::NEG_INFINITY'
        return f'{val!r}f64'

    @classmethod
    def translate_list(cls, val):
        if len({type(item) for item in val}) > 1:
            raise PapermillException(f'a list in Rust has items of one type: {val}')
        items = ', '.join(cls.translate(item) for item in val)
        return f'vec![{items}]' if val else 'Vec::<String>::new()'

    @classmethod
    def translate_dict(cls, val):
        if len({type(item) for item in val.values()}) > 1:
            raise PapermillException(f'a map in Rust has values of one type: {val}')
        items = ', '.join(f'({cls.translate_str(key)}, {cls.translate(item)})' for key, item in val.items())
        kind = '' if val else '::<String, String>'
        return f'std::collections::HashMap{kind}::from([{items}])'

    @classmethod
    def comment(cls, cmt_str):
        return f'// {cmt_str}'.strip()

    @classmethod
    def assign(cls, name, str_val):
        return f'let {name} = {str_val};'


papermill_translators.register('rust', RustTranslator)

# The engine of every notebook: an entry point has to name one.
ENGINE = NBClientEngine
