"""Check the benchmark of trees with missing links, on a small tree."""

from benchmarks.degraded_trees import Case, row, run


def test_a_case_is_measured_and_a_refusal_is_reported():
    outcomes = [run(Case("kary-ntree:3,2", 0.1, seed, "updn")) for seed in (1, 2)]
    assert [each.certified for each in outcomes] == [True, True]
    cells = row("kary-ntree:3,2", 0.1, "updn", outcomes)
    # The leaf that has lost a link sends 3 * 6 flows over 2 links, 9 flows over each link, as the limit states.
    assert cells[:8] == ["`kary-ntree:3,2`", "10%", "updn", "2 of 2", "1.0000", "1.0000", "1.0000, +0", "1"]
    refused = row("torus:3x3", 0.0, "ftree", [run(Case("torus:3x3", 0.0, 1, "ftree"))])
    assert refused[3] == "0 of 1"
    assert "not a tree" in refused[-1]
