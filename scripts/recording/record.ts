import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { root } from '../steps.ts';
import { type Chunk, renderRecording, toLines } from './render.ts';

// `npm run recording`: types commands at a real terminal with a separate fleet, and writes docs/recording.svg. Needs
// `script` of util-linux and the programs for `npm start`. Takes about a minute.

const run = promisify(execFile);

/** Line to type, and the output (by default the next prompt) after which the next line is typed. */
type Step = { line: string; until?: RegExp };

const PROMPT = /\n\$ $/;

const steps: Step[] = [
  { line: `shellfleet exec demo -- 'cd /tmp; export WHO=agent'` },
  { line: `shellfleet exec demo -- 'echo "$WHO in $PWD"'   # the shell is kept` },
  { line: `(shellfleet exec demo -- 'for i in 1 2 3 4; do echo "step $i"; sleep 3; done' &)`, until: /step 2\r?\n/ },
  { line: '' },
  { line: 'kill -9 $WORKER   # its worker dies; the command goes on', until: /step 4\r?\n/ },
  { line: '' },
  { line: `shellfleet exec demo --timeout 1s -- 'echo working; sleep 60'; echo "exit code $?"` },
  {
    line: `(shellfleet exec safe --approval unless-trusted -- 'rm -rf build; echo removed' &)`,
    until: /to answer\.\r?\n/,
  },
  { line: '' },
  { line: 'shellfleet approvals ls' },
  { line: `shellfleet approvals approve $(shellfleet approvals ls | awk 'NR==2 {print $1}')`, until: /removed\r?\n/ },
  { line: '' },
  { line: `shellfleet exec demo -- 'echo "$WHO in $PWD"'   # the state is still there` },
];

const KEY_MS = 15;
/** Pause for the reader after each line. */
const READ_MS = 700;
const COLUMNS = 112;
/** Time limit for the output of a line. */
const STEP_MS = 30_000;

async function main(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-recording-'));
  const path = `${join(root, 'node_modules/.bin')}:${process.env.PATH}`;
  const env = { ...process.env, SHELLFLEET_STATE_DIR: directory, PATH: path };
  try {
    await run('shellfleet', ['up', '--detach', '--slots', '4'], { env });
    const up = JSON.parse(await readFile(join(directory, 'up.json'), 'utf8'));
    const chunks = await recordTerminal({ ...env, WORKER: String(up.workers[0].pid) });
    await writeFile(join(root, 'docs/recording.svg'), renderRecording(toLines(chunks), COLUMNS));
  } finally {
    await run('shellfleet', ['down'], { env });
    await rm(directory, { recursive: true, force: true });
  }
}

async function recordTerminal(env: NodeJS.ProcessEnv): Promise<Chunk[]> {
  const shell = `stty cols ${COLUMNS}; PS1='$ ' exec bash --norc --noprofile`;
  const terminal = spawn('script', ['--quiet', '--return', '--command', shell, '/dev/null'], {
    env: { ...env, TERM: 'dumb', NO_COLOR: '1' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const chunks: Chunk[] = [];
  const startedAt = performance.now();
  let shown = '\n';
  terminal.stdout.on('data', (data: Buffer) => {
    chunks.push({ atMs: performance.now() - startedAt, text: data.toString() });
    shown += data.toString();
  });
  const see = async (until: RegExp): Promise<void> => {
    for (const deadline = performance.now() + STEP_MS; !until.test(shown); await delay(20))
      if (performance.now() > deadline) throw new Error(`The terminal does not show ${until}, but:\n${shown}`);
  };
  await see(PROMPT);
  for (const { line, until = PROMPT } of steps) {
    for (const key of line) {
      terminal.stdin.write(key);
      await delay(KEY_MS);
    }
    shown = '';
    terminal.stdin.write('\n');
    await see(until);
    await delay(READ_MS);
  }
  terminal.stdin.end('exit\n');
  await once(terminal, 'close');
  return chunks;
}

await main();
