"""Equations of Office files as LaTeX. Pure: a walk over the elements of OMML."""

import re
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element as Node

__all__ = ["EQUATIONS", "latex"]

MATH: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
EQUATIONS: Final = frozenset((f"{MATH}oMath", f"{MATH}oMathPara"))
"""The tags that `latex` takes."""
_LEVELS: Final = 60
"""Below this depth only the letters are taken."""
_NAME: Final = re.compile(r"\S+")
_GREEK: Final = dict(
    zip(
        "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩϑϕϖϵς",
        _NAME.findall(
            "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon "
            "varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega vartheta "
            "phi varpi epsilon varsigma"
        ),
        strict=True,
    )
)
_OPERATORS: Final = dict(
    zip(
        "±×÷⋅∙≤≥≠≈≡∞∂∇√∈∉∋⊂⊃⊆⊇∪∩∅∀∃¬∧∨→←↔⇒⇐⇔↦∝∼…⋯∑∏∫∬∭∮∠⊥∥⊕⊗°′ℏℓℝℕℤℚℂ",
        _NAME.findall(
            "pm times div cdot bullet leq geq neq approx equiv infty partial nabla surd in notin ni subset supset "
            "subseteq supseteq cup cap emptyset forall exists neg wedge vee rightarrow leftarrow leftrightarrow "
            "Rightarrow Leftarrow Leftrightarrow mapsto propto sim ldots cdots sum prod int iint iiint oint angle perp "
            "parallel oplus otimes degree prime hbar ell mathbb{R} mathbb{N} mathbb{Z} mathbb{Q} mathbb{C}"
        ),
        strict=True,
    )
)
_ESCAPED: Final = {character: f"\\{character}" for character in "#$%&_{}"}
_CHARACTERS: Final = str.maketrans(
    _ESCAPED | {sign: f"\\{name} " for sign, name in (_GREEK | _OPERATORS).items()} | {"−": "-", "\\": "\\backslash "}
)
_ACCENTS: Final = {
    "\u0300": "grave",
    "\u0301": "acute",
    "\u0302": "hat",
    "\u0303": "tilde",
    "\u0304": "bar",
    "\u0305": "overline",
    "\u0306": "breve",
    "\u0307": "dot",
    "\u0308": "ddot",
    "\u030c": "check",
    "\u20d7": "vec",
    "\u20d6": "overleftarrow",
    "\u20d1": "vec",
    "→": "vec",
    "^": "hat",
    "~": "tilde",
    "¯": "bar",
    "": "hat",
}
_FUNCTIONS: Final = frozenset(
    _NAME.findall(
        "sin cos tan cot sec csc sinh cosh tanh coth arcsin arccos arctan lim limsup liminf max min sup inf log ln exp "
        "det dim gcd ker arg deg Pr"
    )
)


def latex(node: Node) -> str:
    """The LaTeX of an equation: of `m:oMath`, or of several in an `m:oMathPara`."""
    return " ".join(_inside(node, 0).split())


def _inside(node: Node | None, depth: int) -> str:
    if node is None:
        return ""
    if depth > _LEVELS:
        return "".join(node.itertext()).translate(_CHARACTERS)
    return "".join(_of(child, depth + 1) for child in node)


def _of(node: Node, depth: int) -> str:
    if not node.tag.startswith(MATH):
        return _of_word(node, depth)
    name = node.tag[len(MATH) :]
    match name:
        case "t":
            return (node.text or "").translate(_CHARACTERS)
        case "r":
            return _run(node)
        case "f":
            return _fraction(node, depth)
        case "rad":
            degree, base = _part(node, "deg", depth), _part(node, "e", depth)
            return f"\\sqrt[{degree}]{{{base}}}" if degree.strip() else f"\\sqrt{{{base}}}"
        case "sSup":
            return f"{_base(node, depth)}^{{{_part(node, 'sup', depth)}}}"
        case "sSub":
            return f"{_base(node, depth)}_{{{_part(node, 'sub', depth)}}}"
        case "sSubSup":
            return f"{_base(node, depth)}_{{{_part(node, 'sub', depth)}}}^{{{_part(node, 'sup', depth)}}}"
        case "sPre":
            return f"{{}}_{{{_part(node, 'sub', depth)}}}^{{{_part(node, 'sup', depth)}}}{_base(node, depth)}"
        case "nary":
            return _nary(node, depth)
        case "d":
            return _delimited(node, depth)
        case "m":
            return _lines("matrix", [_row(row, depth) for row in node.findall(f"{MATH}mr")])
        case "eqArr":
            return _lines("array", [_inside(line, depth) for line in node.findall(f"{MATH}e")], "{l}")
        case "acc":
            return f"\\{_ACCENTS.get(_setting(node, 'chr', ''), 'hat')}{{{_part(node, 'e', depth)}}}"
        case "bar" | "groupChr":
            line = "line" if name == "bar" else "brace"
            side = "over" if _setting(node, "pos", "bot") == "top" else "under"
            return f"\\{side}{line}{{{_part(node, 'e', depth)}}}"
        case "limLow" | "limUpp":
            sign = "_" if name == "limLow" else "^"
            return f"{_base(node, depth)}{sign}{{{_part(node, 'lim', depth)}}}"
        case "func":
            return f"{_part(node, 'fName', depth)} {_part(node, 'e', depth)}"
        case _ if name.endswith("Pr"):
            return ""
        case _:
            return _inside(node, depth)


def _of_word(node: Node, depth: int) -> str:
    """What is Word's inside an equation: tracked insertions, and text between the signs."""
    match node.tag.rpartition("}")[2]:
        case "del" | "rPr" | "delText" | "instrText":
            return ""
        case "t":
            return node.text or ""
        case _:
            return _inside(node, depth)


def _lines(name: str, lines: Sequence[str], columns: str = "") -> str:
    return f"\\begin{{{name}}}{columns}" + " \\\\ ".join(lines) + f"\\end{{{name}}}"


def _part(node: Node, name: str, depth: int) -> str:
    return _inside(node.find(f"{MATH}{name}"), depth).strip()


def _base(node: Node, depth: int) -> str:
    base = _part(node, "e", depth)
    return base if len(base) <= 1 or (base.startswith("\\") and base[1:].isalpha()) else f"{{{base}}}"


def _run(node: Node) -> str:
    text = "".join(each.text or "" for each in node if each.tag.endswith("}t"))
    if text.strip() in _FUNCTIONS:
        return f"\\{text.strip()} "
    shown = text.translate(_CHARACTERS)
    is_text = node.find(f"{MATH}rPr/{MATH}nor") is not None and any(letter.isalpha() for letter in text)
    return f"\\text{{{shown}}}" if is_text else shown


def _fraction(node: Node, depth: int) -> str:
    above, below = _part(node, "num", depth), _part(node, "den", depth)
    match _setting(node, "type", "bar"):
        case "lin" | "skw":
            return f"{above}/{below}"
        case "noBar":
            return f"{{{above} \\atop {below}}}"
        case _:
            return f"\\frac{{{above}}}{{{below}}}"


def _nary(node: Node, depth: int) -> str:
    sign = _setting(node, "chr", "∫").translate(_CHARACTERS).strip()
    below, above = _part(node, "sub", depth), _part(node, "sup", depth)
    limits = (f"_{{{below}}}" if below else "") + (f"^{{{above}}}" if above else "")
    return f"{sign}{limits} {_part(node, 'e', depth)}"


def _delimited(node: Node, depth: int) -> str:
    opening, closing = _setting(node, "begChr", "("), _setting(node, "endChr", ")")
    between = _setting(node, "sepChr", "|")
    inner = f" {between} ".join(_inside(each, depth) for each in node.findall(f"{MATH}e"))
    return f"\\left{_fence(opening)}{inner}\\right{_fence(closing)}"


def _fence(sign: str) -> str:
    names = {"": ".", "{": "\\{", "}": "\\}", "⌊": "\\lfloor ", "⌋": "\\rfloor ", "⌈": "\\lceil ", "⌉": "\\rceil "}
    return (names | {"⟨": "\\langle ", "⟩": "\\rangle ", "‖": "\\| "}).get(sign, sign)


def _row(row: Node, depth: int) -> str:
    return " & ".join(_inside(cell, depth) for cell in row.findall(f"{MATH}e"))


def _setting(node: Node, name: str, default: str) -> str:
    """A setting of an equation's part. One that is there without a value is empty: no sign at all."""
    local = node.tag[len(MATH) :]
    found = node.find(f"{MATH}{local}Pr/{MATH}{name}")
    return default if found is None else found.get(f"{MATH}val", "")
