"""What mkdocs does to a page beside its plugins.

Formulas, pictures that follow the theme, files outside of docs.
"""

import re
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]


def on_files(files, config):
    """Add what pages link to outside of docs, such as examples."""
    for page in list(files.documentation_pages()):
        for path in re.findall(r"\]\((?:\.\./)+([\w./-]+)\)", page.content_string):
            if (
                (ROOT / path).is_file()
                and not path.startswith("docs/")
                and f"files/{path}" not in files.src_uris
            ):
                content = (ROOT / path).read_bytes()
                files.append(File.generated(config, f"files/{path}", content=content))
    return files


def on_page_markdown(markdown, page, config, files):
    """Write formulas as MathML, SVG into the page, and links to files of the repository."""
    depth = page.file.src_uri.count("/")
    markdown = re.sub(r"```math\n(.+?)```", _formula, markdown, flags=re.DOTALL)
    markdown = re.sub(
        r"!\[[^\]]*\]\(([\w./-]+\.svg)\)", lambda found: _picture(page, found[1]), markdown
    )
    # folders
    markdown = re.sub(r"\[([^\]]+)\]\((?:\.\./)+(examples/space|model_cards)\)", r"\1", markdown)
    outside = rf"\]\((?:\.\./){{{depth + 1}}}([\w./-]+)\)"
    return re.sub(outside, lambda found: f"]({'../' * depth}files/{found[1]})", markdown)


def _formula(found):
    return f'<div class="formula">{convert(" ".join(found[1].split()), display="block")}</div>'


def _picture(page, path):
    text = (Path(page.file.abs_src_path).parent / path).read_text(encoding="utf-8")
    # which serves readers outside of the site
    text = re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
    return f'<figure class="picture">{" ".join(text.split())}</figure>'
