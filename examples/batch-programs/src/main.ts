import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Fleet, type Task, type TaskResult } from '@shellfleet/client';
import { makePrograms, type Program } from './programs.ts';

// Two hundred programs, each built and tested by a task of one batch.

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '200' },
    keep: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

/** How the programs of each language are built and run. Both are in the default image. */
const TOOLS = {
  python: {
    file: 'main.py',
    build: 'python3 -m py_compile src/main.py && python3 -m zipfile -c build/program.zip src/main.py',
    run: 'python3 src/main.py',
  },
  javascript: {
    file: 'main.mjs',
    build: 'node --check src/main.mjs && tar -czf build/program.tgz src/main.mjs',
    run: 'node src/main.mjs',
  },
};

async function main(): Promise<number> {
  if (values.help) return say('main.ts [--tasks N] [--keep DIRECTORY]   default: 200');
  const programs = makePrograms().slice(0, Number(values.tasks));
  const directory = values.keep ?? (await mkdtemp(join(tmpdir(), 'batch-programs-')));
  await mkdir(directory, { recursive: true });
  try {
    const tasks = await Promise.all(programs.map((program, index) => toTask(program, join(directory, `${index}`))));
    await using fleet = await Fleet.connect();
    const out = join(directory, 'results.jsonl');
    const batch = fleet.batch(
      tasks.map((task) => ({ ...task, outputs: { '/workspace/build': join(directory, 'built', '{id}') } })),
      { out, overwrite: true, taskDeadlineMs: 600_000 },
    );
    batch.on('progress', ({ done, passed, failed, queued = 0 }) =>
      say(`${done} programs done: ${passed} passed, ${failed} failed, ${queued} wait.`),
    );
    const results = await Array.fromAsync(batch);
    return (await check(programs, results, join(directory, 'built'))) ? 0 : 1;
  } finally {
    if (values.keep === undefined) await rm(directory, { recursive: true, force: true });
  }
}

/** Writes the source and the examples of a program, and returns its task. */
async function toTask({ id, language, source, examples }: Program, directory: string): Promise<Task> {
  const { file, build, run } = TOOLS[language];
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, file), source);
  await writeFile(join(directory, 'examples'), examples.map(([x, answer]) => `${x}|${answer}\n`).join(''));
  return {
    id,
    files: {
      [`/workspace/src/${file}`]: join(directory, file),
      '/workspace/examples': join(directory, 'examples'),
    },
    setup: ['mkdir -p build'],
    script: build,
    grade: gradeOf(run),
  };
}

/** Returns the script that runs a program on its examples. Its last line is the score, from 0 to 1. */
const gradeOf = (run: string) => `
right=0 all=0
while IFS='|' read -r argument answer; do
  all=$((all + 1))
  [ "$(${run} "$argument" < /dev/null)" = "$answer" ] && right=$((right + 1))
done < examples
echo "$right of $all examples are right"
echo "{\\"pass\\": $([ $right = $all ] && echo true || echo false), \\"score\\": $(awk "BEGIN { print $right / $all }")}"`;

/** Compares each result with what its program must have, and tells what came out. */
async function check(programs: readonly Program[], results: readonly TaskResult[], built: string): Promise<boolean> {
  const byId = new Map(results.map((result) => [result.task, result]));
  const wrong = programs.filter(({ id, score }) => {
    const result = byId.get(id);
    if (score === undefined) return result?.outcome !== 'failure' || result.passed;
    return result?.outcome !== 'success' || result.passed !== (score === 1) || result.score !== score;
  });
  for (const { id } of wrong) say(`${id} did not end as it should: ${JSON.stringify(byId.get(id))}`);
  const scores = results.map(({ score = 0 }) => score);
  const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
  const archives = (await readdir(built, { recursive: true })).filter((name) => /program\.(zip|tgz)$/.test(name));
  const passed = results.filter((result) => result.passed).length;
  say(
    `${passed} of ${results.length} programs passed, the mean score is ${mean.toFixed(2)}; ${archives.length} were built.`,
  );
  return wrong.length === 0 && archives.length === programs.filter(({ score }) => score !== undefined).length;
}

function say(line: string): number {
  console.log(line);
  return 0;
}

process.exitCode = await main();
