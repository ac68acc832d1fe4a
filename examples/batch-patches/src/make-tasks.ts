import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Fleet, Task } from '@shellfleet/client';
import type { Instance } from './instances.ts';

/** Makes the repositories, and writes them, the patches of the model and `tasks.jsonl` into a directory. */
export async function makeTasks(
  fleet: Fleet,
  instances: readonly Instance[],
  directory: string,
  timeoutMs: number,
): Promise<void> {
  const commits = await makeRepositories(fleet, instances, join(directory, 'repositories'));
  for (const { name, samples } of instances) {
    await mkdir(join(directory, 'samples', name), { recursive: true });
    for (const [index, { diff }] of samples.entries())
      await writeFile(join(directory, 'samples', name, `${index + 1}.diff`), diff);
  }
  const tasks = instances.map((instance) => ({
    ...toTask(instance, commits.get(instance.name) ?? '', resolve(directory)),
    timeoutMs,
  }));
  await writeFile(join(directory, 'tasks.jsonl'), tasks.map((task) => `${JSON.stringify(task)}\n`).join(''));
}

/** Makes the repositories in a session, so that this machine needs no git. Returns the last commit of each. */
async function makeRepositories(
  fleet: Fleet,
  instances: readonly Instance[],
  directory: string,
): Promise<Map<string, string>> {
  await using session = await fleet.session(`repositories-${randomUUID()}`);
  const { outcome, output, stdout } = await session.run(`
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org
export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
set -e
mkdir bundles
${instances.map(toRepository).join('\n')}`);
  if (outcome !== 'success') throw new Error(`The repositories could not be made: ${output}`);
  await session.files.download('/workspace/bundles', directory);
  return new Map(stdout.split('\n').map((line) => line.split(' ') as [string, string]));
}

/** Returns the script that makes a repository, and prints its name and its last commit. */
function toRepository({ name, commits }: Instance): string {
  const each = commits.map(({ message, files }) => {
    const contents = Object.entries(files).map(([path, text]) => heredoc(path, text));
    return `${contents.join('\n')}\ngit add .\ngit commit -q -m ${quote(message)}`;
  });
  return `git init -q -b main ${name}
cd ${name}
${each.join('\n')}
git bundle create -q ../bundles/${name}.bundle main
echo ${name} "$(git rev-parse main)"
cd ..`;
}

function toTask(instance: Instance, commit: string, directory: string): Task {
  const { name } = instance;
  return {
    id: name,
    files: {
      '/workspace/repository.bundle': join(directory, 'repositories', `${name}.bundle`),
      '/workspace/model.diff': join(directory, 'samples', '{id}', '{repeat}.diff'),
    },
    setup: [`git clone -q repository.bundle repository && cd repository && git checkout -q ${commit}`],
    script: 'git apply ../model.diff && git add --all && git diff --cached > ../result.diff',
    outputs: { '/workspace/result.diff': join(directory, 'results', '{id}', '{repeat}.diff') },
    grade: { script: gradeOf(instance), fresh: true },
  };
}

/**
 * Returns the script that grades a result in a repository where nothing else was done. Each test is a process of its
 * own, whose exit code decides, so the code may print anything. The last line is the share of the tests that passed.
 */
function gradeOf({ name, tests, failToPass, passToPass }: Instance): string {
  const wanted = [...failToPass, ...passToPass];
  return `git apply ../result.diff || { echo 0; exit 1; }
${heredoc(`test_${name}.py`, tests)}
passed=0
for test in ${wanted.join(' ')}; do
  python3 -m unittest test_${name}.$test >&2 && passed=$((passed + 1))
done
awk "BEGIN { print $passed / ${wanted.length} }"
[ $passed = ${wanted.length} ]`;
}

const heredoc = (path: string, text: string) => `cat > ${path} << 'END_OF_FILE'\n${text}END_OF_FILE`;

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
