"""No part weighs more than it may: ``make size`` prints what each weighs."""

import pytest
import weight


@pytest.mark.skipif(not (weight.ROOT / ".git").exists(), reason="not a checkout of git")
def test_no_part_weighs_more_than_it_may(capsys):
    assert weight.main() == 0, capsys.readouterr().out
