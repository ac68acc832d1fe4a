import type { Fleet, Result, Session } from '@shellfleet/client';

const LINES = 60;
/** Output of a command that takes a second and a half. */
const LONG = Array.from({ length: LINES }, (_, index) => `line ${index + 1}\n`).join('');
const longScript = `for i in $(seq 1 ${LINES}); do echo line $i; sleep 0.025; done`;

export interface LoadReport {
  commands: number;
  /** What a command should have had and had not, one sentence each. */
  wrong: string[];
}

/**
 * Sessions that run one command after another. Each short one counts in its shell: a number that is missing, or there
 * twice, is a command that was lost or doubled. Each fourth one is long, so that it is under way at most moments.
 */
export class CountingLoad {
  readonly sessions: Session[] = [];
  readonly #wrong: string[] = [];
  #commands = 0;
  #stopped = false;
  readonly #running: Promise<void>[] = [];

  /** Opens further sessions, which begin at once. */
  async open(fleet: Fleet, prefix: string, count: number): Promise<void> {
    const spec = { policy: 'kubernetes', limits: { memoryBytes: 64 << 20 } } as const;
    const opening = Array.from({ length: count }, (_, index) => fleet.session(`${prefix}-${index + 1}`, spec));
    const opened = await Promise.all(opening);
    await Promise.all(opened.map((session) => session.run('n=0')));
    this.sessions.push(...opened);
    this.#running.push(...opened.map((session, index) => this.#drive(session, index)));
  }

  /** Lets the commands that run end. */
  async stop(): Promise<LoadReport> {
    this.#stopped = true;
    await Promise.all(this.#running);
    return { commands: this.#commands, wrong: this.#wrong };
  }

  async #drive(session: Session, index: number): Promise<void> {
    for (let number = 1, round = index; !this.#stopped; round += 1) {
      const isLong = round % 4 === 0;
      const expected = isLong ? LONG : `${number}\n`;
      const result = await session.run(isLong ? longScript : 'echo $((n += 1))').catch(String);
      if (!isLong) number += 1;
      this.#commands += 1;
      const problem = typeof result === 'string' ? result : problemOf(result, expected);
      if (problem === undefined) continue;
      this.#wrong.push(`${session.id}, command ${this.#commands}: ${problem}`);
      return;
    }
  }
}

function problemOf({ outcome, stdout, shell }: Result, expected: string): string | undefined {
  if (outcome !== 'success') return `ended as ${outcome}`;
  if (shell.state !== 'kept' || shell.epoch !== 1) return `its shell was ${shell.state}, number ${shell.epoch}`;
  return stdout === expected ? undefined : `printed ${JSON.stringify(stdout)} instead of ${JSON.stringify(expected)}`;
}
