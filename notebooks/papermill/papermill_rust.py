"""Parameters of papermill for notebooks in Rust: how values are written as Rust, and what a notebook's own are.

`RustTranslator` has the form of the translators in `papermill/translators.py`, where it may move as it is.
"""

import re

from papermill.engines import NBClientEngine
from papermill.exceptions import PapermillException
from papermill.models import Parameter
from papermill.translators import Translator, papermill_translators


class RustTranslator(Translator):
    # Comments, strings and characters, in which no mark counts, and the marks that begin and end what is nested.
    TOKEN_PATTERN = re.compile(
        r'(?P<comment>//[^\n]*|/\*.*?\*/)'
        r'|(?P<string>b?r(?P<fence>\#*)".*?"(?P=fence)|b?"(?:\\.|[^"\\])*")'
        r"|(?P<char>'(?:\\[^']+|\\'|[^'\\])')"
        r'|(?P<begin>[(\[{])|(?P<end>[)\]}])|(?P<other>.)',
        re.DOTALL,
    )
    PARAMETER_PATTERN = re.compile(r'let\s+(?P<mut>mut\s+)?(?P<name>\w+)\s*(?::(?!:)\s*(?P<type>[^=]+?))?\s*=\s*(?P<value>.+)', re.DOTALL)
    # The type of a value that says it, where it is not annotated; \\g<type> is a part of the value.
    VALUE_PATTERNS = [
        (re.compile(r'true|false'), 'bool'),
        (re.compile(r'-?\d[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?\d+)?_?(?P<type>[iuf](?:8|16|32|64|128|size))'), r'\g<type>'),
        (re.compile(r'-?0[xob][\da-fA-F_]*?_?(?P<type>[iu](?:8|16|32|64|128|size))|(?P<of>[iuf](?:8|16|32|64|128|size))::\w+'), r'\g<type>\g<of>'),
        (re.compile(r'-?(?:\d[\d_]*|0[xob][\da-fA-F_]+)'), 'i32'),
        (re.compile(r'-?\d[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?\d+)?'), 'f64'),
        (re.compile(r'String::.*|format!.*|r?\#*".*"\#*\.(?:to_string|to_owned|into)\(\)', re.DOTALL), 'String'),
        (re.compile(r'r?\#*".*"\#*', re.DOTALL), '&str'),
        (re.compile(r"'.*'", re.DOTALL), 'char'),
        (re.compile(r'None::<(?P<type>.*)>'), r'Option<\g<type>>'),
        (re.compile(r'Vec::<(?P<type>.*)>::.*', re.DOTALL), r'Vec<\g<type>>'),
    ]

    # Of the parameters of the notebook that was inspected last: the type, whether it is written there, and `mut `. papermill
    # inspects one just before it writes values for it, and has no other way to tell of it.
    _kinds = {}

    @classmethod
    def codify(cls, parameters, comment='Parameters'):
        """The cell with values, each of the type that the notebook's own parameter has."""
        kinds, cls._kinds = cls._kinds, {}
        lines = [cls.comment(comment)]
        for name, val in parameters.items():
            kind, is_written, mutable = kinds.get(name, ('None', False, ''))
            # A number without a type has another one where its value needs that.
            if kind == 'i32' and not is_written and isinstance(val, int) and not -(2**31) <= val < 2**31:
                kind = 'None'
            kind_shown = '' if kind == 'None' else f': {kind}'
            lines.append(cls.assign(f'{mutable}{name}{kind_shown}', cls.translate_as(val, kind)))
        return '\n'.join(lines) + '\n'

    @classmethod
    def translate_as(cls, val, kind):
        """A value as one of the type `kind`; where it is of another, as Rust has it by itself."""
        within = re.fullmatch(r'(?P<name>Option|Vec)<(?P<item>.*)>', kind)
        is_number = isinstance(val, (int, float)) and not isinstance(val, bool)
        if within and within['name'] == 'Option':
            return 'None' if val is None else f"Some({cls.translate_as(val, within['item'])})"
        if within and isinstance(val, list):
            return f"vec![{', '.join(cls.translate_as(item, within['item']) for item in val)}]"
        listed = re.fullmatch(r"(?P<reference>&(?:'static )?)?\[(?P<item>[^;]*)(?:;.*)?\]", kind, re.DOTALL)
        if listed and isinstance(val, list):
            items = ', '.join(cls.translate_as(item, listed['item'].strip()) for item in val)
            return f"{'&' if listed['reference'] else ''}[{items}]"
        if kind.startswith('(') and isinstance(val, list) and len(cls._parts(kind[1:-1])) == len(val):
            items = ', '.join(map(cls.translate_as, val, cls._parts(kind[1:-1])))
            return f"({items}{',' if len(val) == 1 else ''})"
        mapped = re.fullmatch(r'(?:std::collections::)?(?P<name>HashMap|BTreeMap)<(?P<items>.*)>', kind, re.DOTALL)
        if mapped and isinstance(val, dict):
            of_key, of_value = cls._parts(mapped['items'])
            items = [f'({cls.translate_as(key, of_key)}, {cls.translate_as(item, of_value)})' for key, item in val.items()]
            return f"std::collections::{mapped['name']}::from([{', '.join(items)}])"
        if re.fullmatch(r'[iu](8|16|32|64|128|size)', kind) and is_number and isinstance(val, int):
            return f'{val}'
        if kind in ('f32', 'f64') and is_number:
            return cls.translate_float(float(val)).replace('f64', kind)
        # A command line has one form of a value: `true` is a text there, and a name can look like a number.
        if kind == 'bool' and val in ('true', 'false'):
            return val
        if kind == 'char' and not isinstance(val, bool) and len(str(val)) == 1:
            return cls.translate_char(str(val))
        if kind == 'String':
            return cls.translate_str(val)
        if kind in ('&str', "&'static str"):
            return cls.translate_escaped_str(val)
        return cls.translate(val)

    # What has an escape in Rust; all other characters stand as they are.
    ESCAPES = {'\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\0': '\\0'}

    @classmethod
    def translate_escaped_str(cls, str_val):
        return '"' + ''.join((cls.ESCAPES | {'"': '\\"'}).get(letter, letter) for letter in str(str_val)) + '"'

    @classmethod
    def translate_char(cls, letter):
        return "'" + (cls.ESCAPES | {"'": "\\'"}).get(letter, letter) + "'"

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

    @classmethod
    def inspect(cls, parameters_cell):
        """The parameters of a cell: each `let`, with the comment behind it."""
        params, cls._kinds = [], {}
        for statement, comment in cls._statements(parameters_cell['source']):
            found = cls.PARAMETER_PATTERN.fullmatch(statement)
            if found:
                name, annotated, value, mutable = found.group('name', 'type', 'value', 'mut')
                params.append(Parameter(name, annotated or cls._type_of(value), value, comment))
                cls._kinds[name] = (params[-1].inferred_type_name, annotated is not None, 'mut ' if mutable else '')
        return params

    @classmethod
    def _parts(cls, kinds):
        """Types that commas part, but for those within another type."""
        parts, depth = [''], 0
        for letter in kinds:
            depth += (letter in '<([') - (letter in '>)]')
            if letter == ',' and depth == 0:
                parts.append('')
            else:
                parts[-1] += letter
        return [part.strip() for part in parts if part.strip()]

    @classmethod
    def _statements(cls, source):
        """The statements of a source without the comments in them, each with the comment behind it on its line."""
        found, statement, depth, is_behind = [], '', 0, False
        for token in cls.TOKEN_PATTERN.finditer(source):
            kind, text = token.lastgroup, token.group()
            if kind == 'comment':
                if is_behind and not statement.strip():
                    found[-1][1] = text.strip('/* ')
                continue
            depth += (kind == 'begin') - (kind == 'end')
            is_behind = is_behind and text != '\n'
            if text == ';' and depth == 0:
                found.append([statement.strip(), ''])
                statement, is_behind = '', True
            else:
                statement += text
        return found

    @classmethod
    def _type_of(cls, value):
        """The type of a value where it shows; "None" where it does not, as papermill has it."""
        if value.startswith('vec!['):
            kind = cls._type_of(value[len('vec!['):-1].split(',')[0].strip())
            return 'Vec' if kind == 'None' else f'Vec<{kind}>'
        if value.startswith('Some(') and value.endswith(')'):
            kind = cls._type_of(value[len('Some('):-1].strip())
            return kind if kind == 'None' else f'Option<{kind}>'
        for pattern, kind in cls.VALUE_PATTERNS:
            found = pattern.fullmatch(value)
            if found:
                return found.expand(kind)
        return 'None'


papermill_translators.register('rust', RustTranslator)

# The engine of every notebook: an entry point has to name one.
ENGINE = NBClientEngine
