import { createHash } from 'node:crypto';
import { createRandom, type Random } from '../../support/random.ts';
import { type Expectation, type Operation, type Printed, READERS } from '../history/history.ts';

// The workload of a seed. Every process plans the same commands, so a killed client continues where it was.

/** File with a session's marks, below the working directory in its sandbox or in its workspace on the host. */
export const MARKS_FILE = '/workspace/marks';

/** Work of a command between its first mark and its last one. `end` appends the last mark. */
interface Deed {
  script: (end: string, random: Random, id: string) => string;
  expect: (random: Random, id: string) => Partial<Omit<Expectation, 'stdout' | 'stderr'>> & Texts;
  stdin?: (id: string) => string;
}
interface Texts {
  stdout?: string;
  stderr?: string;
}

const numbers = (count: number): string => Array.from({ length: count }, (_, index) => `${index + 1}\n`).join('');
const MANY = 40_000;

const DEEDS: readonly [Deed, ...Deed[]] = [
  { script: (end, _, id) => `echo ${id}-done\n${end}`, expect: (_, id) => ({ stdout: `${id}-done\n` }) },
  {
    script: (end, _, id) => `sleep 0.2; echo "${id} to stderr" >&2; ${end}; (exit 3)`,
    expect: (_, id) => ({ outcome: 'failure', exitCode: 3, stderr: `${id} to stderr\n` }),
  },
  { script: (end) => `${end}; exit 4`, expect: () => ({ outcome: 'failure', exitCode: 4 }) },
  {
    script: (end) => `for i in $(seq 1 30); do echo $i; sleep 0.05; done; ${end}`,
    expect: () => ({ stdout: numbers(30) }),
  },
  { script: (end) => `seq 1 ${MANY}; ${end}`, expect: () => ({ stdout: numbers(MANY) }) },
  {
    script: (end) => `while read -r line; do echo "<$line>"; done; ${end}`,
    stdin: (id) => `${id}\nand more\n`,
    expect: (_, id) => ({ stdout: `<${id}>\n<and more>\n` }),
  },
];

/** Rare command that ends its own shell, and the state with it. */
const SUICIDE: Deed = {
  script: (end) => `${end}; kill -9 $$`,
  expect: () => ({ outcome: 'failure', exitCode: 137, endsShell: true }),
};

/** Yields the commands of a session, in order, without an end. */
export function* operationsOf(seed: number, session: string): Generator<Operation, never> {
  const random = createRandom(seedOf(seed, session));
  for (let index = 0; ; index += 1) yield toOperation(random, session, index);
}

function toOperation(random: Random, session: string, index: number): Operation {
  const id = `${session}.${index}`;
  const deed = random.chance(0.03) ? SUICIDE : random.pick(DEEDS);
  const { stdout = '', stderr = '', ...expected } = deed.expect(random, id);
  const begin = `n=$((n + 1)); echo begin ${id} >> ${MARKS_FILE}; echo "${id} $n"`;
  return {
    id,
    session,
    index,
    script: `${begin}\n${deed.script(`echo end ${id} >> ${MARKS_FILE}`, random, id)}`,
    ...(deed.stdin === undefined ? {} : { stdin: deed.stdin(id) }),
    expect: {
      outcome: 'success',
      exitCode: 0,
      endsShell: false,
      ...expected,
      stdout: describe(stdout),
      stderr: describe(stderr),
    },
    reader: random.pick(READERS),
    waits: random.chance(0.5),
    pauseMs: random.below(400),
  };
}

export function describe(data: string | Uint8Array): Printed {
  return { bytes: Buffer.byteLength(data), sha256: createHash('sha256').update(data).digest('hex').slice(0, 16) };
}

/** Returns the seed of a part of the run, so that no part depends on the amount of randomness in the others. */
export function seedOf(seed: number, part: string): number {
  return createHash('sha256').update(`${seed} ${part}`).digest().readUInt32LE();
}
