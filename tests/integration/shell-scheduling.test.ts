// How the kernel schedules the processes of a session.
import { describe, expect, test } from 'vitest';
import { openBox } from '../support/shell-box.ts';

/** Prints the scheduling policy of a process: the 41st field of its status, counted behind the name in parentheses. */
const policyOf = (pid: string) => `read -r line < /proc/${pid}/stat; set -- \${line##*)}; shift 38; echo "$1"`;
const SCHED_BATCH = '3\n';

describe('a session', () => {
  test.each(['session', 'dashOnly', 'busybox'] as const)(
    'never interrupts a process of the host when it is woken (%s)',
    async (image) => {
      await using it = await openBox({ image });
      expect(await it.client.run(policyOf('1'))).toMatchObject({ out: SCHED_BATCH });
      expect(await it.client.run(policyOf('$$'))).toMatchObject({ out: SCHED_BATCH });
      expect(await it.client.run(`sh -c '${policyOf('$$')}'`)).toMatchObject({ out: SCHED_BATCH });
    },
  );
});
