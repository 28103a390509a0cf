"""The processor on which a thread measures; on a stand-in for the system, since a machine may have too few."""

import threading
import unittest
from unittest import mock

from pytorch_system import affinity


class Machine:
    """Each thread's processors; a thread has those of the thread that starts it, which a stand-in cannot see."""

    def __init__(self, count):
        self.processors = set(range(count))

    def sched_getaffinity(self, _):
        return set(self.processors)

    def sched_setaffinity(self, _, processors):
        self.processors = set(processors)


class Affinity(unittest.TestCase):
    def on(self, count):
        machine = Machine(count)
        patch = mock.patch.object(affinity, "os", machine)
        patch.start()
        self.addCleanup(patch.stop)
        return machine

    def test_a_thread_is_kept_on_the_last_of_four_processors_and_freed_after_an_error(self):
        machine = self.on(4)
        with self.assertRaises(ValueError), affinity.kept():
            self.assertEqual(machine.processors, {3})
            with affinity.elsewhere():
                self.assertEqual(machine.processors, {0, 1, 2, 3})
            self.assertEqual(machine.processors, {3})
            raise ValueError
        self.assertEqual(machine.processors, {0, 1, 2, 3})

    def test_what_is_started_elsewhere_leaves_the_core_where_others_are_left(self):
        self.assertEqual(affinity.others(set(range(6)), 5, affinity.listed("1,5\n")), {0, 2, 3, 4})
        self.assertEqual(affinity.others(set(range(5)), 4, affinity.listed("3-4")), set(range(5)))
        self.assertEqual(affinity.others(set(range(8)), 7, set()), set(range(7)))

    def test_a_thread_stays_where_it_is_told(self):
        machine = self.on(6)
        with affinity.kept():
            self.assertEqual((affinity.kept_on(), affinity.choices()), (5, [5, 4, 3, 2, 1, 0]))
            affinity.stay_on(2)
            self.assertEqual((machine.processors, affinity.kept_on()), ({2}, 2))
            with affinity.elsewhere():
                self.assertNotIn(2, machine.processors)
        self.assertEqual(machine.processors, set(range(6)))

    def test_three_processors_are_too_few(self):
        machine = self.on(3)
        with affinity.kept():
            self.assertEqual(machine.processors, {0, 1, 2})

    def test_a_thread_that_is_not_kept_starts_others_as_it_is(self):
        machine = self.on(8)
        seen = []

        def look():
            with affinity.elsewhere():
                seen.append(set(machine.processors))

        with affinity.kept():
            other = threading.Thread(target=look)
            other.start()
            other.join()
        self.assertEqual(seen, [{7}])

    def test_a_system_without_it_keeps_nothing(self):
        with mock.patch.object(affinity, "os", object()), affinity.kept(), affinity.elsewhere():
            pass


if __name__ == "__main__":
    unittest.main()
