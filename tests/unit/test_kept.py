"""What is remembered stays within its bound, and the newest of it stays."""

from __future__ import annotations

import random
import threading

from sessiongraph_web.kept import Kept


def test_what_was_asked_for_longest_ago_is_forgotten_first() -> None:
    """Asking for a value keeps it; the oldest one goes when there is no room."""
    kept: Kept[str] = Kept(3)
    for name in "abc":
        kept.put(name, name.upper(), 1)
    assert kept.get("a") == "A"
    kept.put("d", "D", 1)
    assert [kept.get(name) for name in "abcd"] == ["A", None, "C", "D"]


def test_what_is_too_heavy_is_not_kept_and_drives_nothing_out() -> None:
    """One giant does not cost all others their place."""
    kept: Kept[str] = Kept(3)
    kept.put("a", "A", 2)
    kept.put("giant", "G", 4)
    assert (kept.get("a"), kept.get("giant"), kept.weight) == ("A", None, 2)


def test_a_value_in_place_of_another_is_weighed_alone() -> None:
    """Putting a key again replaces its value and its weight; forgetting everything leaves no weight."""
    kept: Kept[str] = Kept(10)
    for weight in (7, 2, 9):
        kept.put("a", str(weight), weight)
        assert (kept.get("a"), kept.weight) == (str(weight), weight)
    kept.clear()
    assert (kept.get("a"), kept.weight) == (None, 0)


def test_threads_that_share_it_keep_the_bound() -> None:
    """Whatever several threads put at once, it weighs what it holds and no more than it may."""
    kept: Kept[int] = Kept(50)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(2000):
            key = chance.randrange(40)
            kept.put(key, key, chance.randrange(1, 9))
            assert kept.get(chance.randrange(40)) in (None, *range(40))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < kept.weight <= 50
    for key in range(40):
        kept.put(key, key, 0)
    kept.put("all", 0, 50)
    assert kept.weight == 50
