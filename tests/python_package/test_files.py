# SPDX-License-Identifier: Apache-2.0
"""Files are written whole or not at all, and only regular ones are read."""
import errno
import os
import resource
import signal
import stat
import tempfile
import unittest
from unittest import mock

import penstock

MORE_THAN_MAY_BE_WRITTEN = 1000  # bytes of each file below


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.path = folder.name, os.path.join(folder.name, "file")
        schedule = penstock.schedule("1f1b", p=4, m=200)
        simulation = schedule.simulate()
        self.report = penstock.Report(simulation)
        self.simulation = simulation
        self.writers = [schedule.to_csv, simulation.save_trace, self.report.save]

    def refused(self, text, call, error=penstock.InputError):
        with self.assertRaises(error) as caught:
            call()
        self.assertIn(text, str(caught.exception))

    def earlier(self, text="what was there"):
        with open(self.path, "w") as file:
            file.write(text)

    def contents(self):
        with open(self.path) as file:
            return file.read()

    def test_a_write_that_fails_leaves_the_earlier_file(self):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
        for write in self.writers:
            self.earlier()
            resource.setrlimit(resource.RLIMIT_FSIZE, (MORE_THAN_MAY_BE_WRITTEN, limits[1]))
            self.refused(f"path {self.path} cannot be written: File too large", lambda: write(self.path), penstock.RunError)
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            self.assertEqual(self.contents(), "what was there")
            self.assertEqual(os.listdir(self.folder), ["file"])
            write(self.path)
            self.assertGreater(os.path.getsize(self.path), MORE_THAN_MAY_BE_WRITTEN)

    def test_an_interruption_leaves_the_earlier_file(self):
        for interrupted in ("os.fsync", "os.replace"):
            for write in self.writers:
                self.earlier()
                with mock.patch(interrupted, side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
                    write(self.path)
                self.assertEqual(self.contents(), "what was there")
                self.assertEqual(os.listdir(self.folder), ["file"])

    def test_what_cannot_be_computed_leaves_the_earlier_file(self):
        self.earlier()
        for owner, write in ((self.simulation, self.simulation.save_trace), (self.report, self.report.save)):
            owner._core = mock.Mock(trace=mock.Mock(side_effect=KeyboardInterrupt), html=mock.Mock(side_effect=KeyboardInterrupt))
            with self.assertRaises(KeyboardInterrupt):
                write(self.path)
            self.assertEqual(self.contents(), "what was there")

    def test_a_written_file_has_the_permissions_of_the_earlier_one(self):
        mask = os.umask(0o027)
        self.addCleanup(os.umask, mask)
        for write in self.writers:
            write(self.path)
            self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o640)
            os.chmod(self.path, 0o604)
            write(self.path)
            self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o604)
            os.unlink(self.path)

    def test_what_a_link_names_is_written(self):
        link = os.path.join(self.folder, "link")
        os.symlink("file", link)
        for write in self.writers:
            write(link)
            self.assertTrue(os.path.islink(link))
            self.assertGreater(len(self.contents()), 100)
            os.unlink(self.path)

    def test_places_that_cannot_be_written_are_refused(self):
        os.mkfifo(self.path)
        for write in self.writers:
            self.refused(f"path {self.folder} is a folder; name a file", lambda: write(self.folder))
            self.refused("is not a regular file, and would be replaced by one", lambda: write(self.path))
            self.refused("is not a regular file, and would be replaced by one", lambda: write("/dev/full"))
            for place in (os.path.join(self.folder, "none", "x"), os.path.join(self.folder, "none", ""), "/proc/x"):
                self.refused(f"path {place} cannot be written: no file can be made in its folder", lambda: write(place))
            self.assertEqual(os.listdir(self.folder), ["file"])
        if os.geteuid() == 0:
            return  # may write everywhere
        os.unlink(self.path)
        self.earlier()
        os.chmod(self.path, 0o400)
        self.refused("cannot be written: it is read-only", lambda: self.writers[0](self.path))
        os.chmod(self.folder, 0o500)
        self.refused("cannot be written: no file can be made in its folder: Permission", lambda: self.writers[0](self.path + "2"))
        os.chmod(self.folder, 0o700)

    def test_what_is_not_a_regular_file_is_not_read(self):
        os.mkfifo(self.path)
        run = os.path.join(self.folder, "run")
        os.mkdir(run)
        os.mkfifo(os.path.join(run, "program.txt"))
        simulate = penstock.schedule("1f1b", p=2, m=2).simulate
        before = signal.signal(signal.SIGALRM, lambda *unused: self.fail("a read hangs"))
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        self.addCleanup(signal.alarm, 0)
        signal.alarm(20)
        explain = lambda path: penstock.explain(torchtitan=path, gpus=8)
        for path in (self.path, "/dev/zero"):
            for call in (explain, penstock.Schedule.from_csv, simulate):
                self.refused(f"{path} is not a regular file", lambda: call(path))
        for call in (explain, penstock.Schedule.from_csv):
            self.refused(f"{self.folder} is not a regular file", lambda: call(self.folder))
        for call in (penstock.measured, simulate):
            self.refused(f"{os.path.join(run, 'program.txt')} is not a regular file", lambda: call(run))

    def test_what_a_signal_handler_raises_goes_on_to_the_caller(self):
        self.earlier("0F0,0B0\n")
        with mock.patch("os.open", side_effect=TimeoutError("of the handler")):
            for call in (lambda: penstock.explain(torchtitan=self.path, gpus=8), lambda: penstock.Schedule.from_csv(self.path)):
                with self.assertRaisesRegex(TimeoutError, "of the handler"):
                    call()
        with mock.patch("os.fsync", side_effect=TimeoutError("of the handler")):
            for write in self.writers:
                with self.assertRaisesRegex(TimeoutError, "of the handler"):
                    write(self.path)
        self.assertEqual(self.contents(), "0F0,0B0\n")
        with mock.patch("os.open", side_effect=OSError(errno.EIO, "Input/output error")):
            self.refused(f"{self.path}: cannot be opened: Input/output error", lambda: penstock.Schedule.from_csv(self.path))

    def test_a_job_file_that_is_no_text_is_named(self):
        with open(self.path, "wb") as file:
            file.write(b'[model]\nflavor = "\xff"\n')
        self.refused(f"{self.path}: cannot be read: ", lambda: penstock.explain(torchtitan=self.path, gpus=8))
