from deploy.site.aliases import line_of_excess


def test_aliases_that_anybody_writes_pass() -> None:
    nodes = "".join(f"node{number}: {{<<: *node, name: n{number}}}\n" for number in range(3000))
    assert line_of_excess(f"node: &node {{cpus: 4, memory: 5, gpus: [a, b]}}\n{nodes}") is None


def test_what_holds_itself_or_is_no_yaml_is_for_its_reader_to_refuse() -> None:
    assert line_of_excess("a: &a [*a, *a]\nb: *a\n") is None
    assert line_of_excess("a: [*b\n") is None
    assert line_of_excess(b"\xff&*") is None


def test_mappings_and_documents_count_too() -> None:
    lines = [
        f"a{n}: &a{n} {{{', '.join(f'k{k}: *a{n - 1}' if n else f'k{k}: x' for k in range(9))}}}"
        for n in range(9)
    ]
    assert line_of_excess("\n".join(lines)) is not None
    assert line_of_excess("---\na: 1\n---\n" + "\n".join(lines)) is not None
