import { posix } from 'node:path';
import type { SourceFile } from './read-source.ts';

/** A rule answers with what is wrong in a file; the text says what to do instead. */
export type Rule = { name: string; check(file: SourceFile): string[] };

const scope = '@shellfleet/';

/** protocol, concurrency ← policy ← mailbox ← admission ← client ← apps. A package may import only the packages in its list. */
const mayImport: Record<string, string[]> = {
  'libs/protocol': [],
  'libs/concurrency': [],
  'libs/policy': ['protocol', 'concurrency'],
  'libs/mailbox': ['protocol', 'concurrency'],
  'libs/admission': ['protocol', 'concurrency', 'mailbox'],
  'libs/keeper': ['protocol'],
  'libs/client': ['protocol', 'concurrency', 'policy', 'mailbox', 'admission'],
  'apps/worker': ['protocol', 'concurrency', 'policy', 'mailbox', 'admission', 'keeper'],
  'apps/producer': ['protocol', 'concurrency', 'mailbox', 'client', 'setup'],
  'infra/setup': ['keeper'],
  'examples/npm-packages': ['client', 'protocol'],
};

/** What a package offers besides its front door. */
const sideDoors = ['@shellfleet/keeper/build', '@shellfleet/protocol/plain', '@shellfleet/worker/shell'];

const packageFolders = [...Object.keys(mayImport), 'tests'];

const workspaceImports: Rule = {
  name: 'workspace imports',
  check({ path, imports }) {
    const home = homeOf(path);
    const allowed = home === undefined ? undefined : mayImport[home];
    if (allowed === undefined) return [];
    const own = home?.split('/').at(-1);
    return imports
      .filter((name) => name.startsWith(scope))
      .map((name) => name.slice(scope.length).split('/')[0]!)
      .filter((name) => name !== own && !allowed.includes(name))
      .map((name) => `${home} must not import ${scope}${name}: move what both need down to a package both may import`);
  },
};

const frontDoors: Rule = {
  name: 'front doors',
  check({ path, imports }) {
    const home = homeOf(path);
    return imports
      .filter((name) => isDeep(name) || leavesHome(path, home, name))
      .map(
        (name) => `${name} reaches into another package: import its name, and export what is missing from its index.ts`,
      );
  },
};

const bullmqInQueue: Rule = onlyIn(
  'bullmq',
  ['libs/admission/src/', 'libs/client/src/queue/tools-queue.ts', 'apps/worker/src/queue/tool-jobs.ts'],
  'sessions go through libs/admission',
);
const dockerodeInSandbox: Rule = onlyIn(
  'dockerode',
  ['apps/worker/src/sandbox/docker/'],
  'go through the Sandbox interface',
);

const protocolIsBare: Rule = {
  name: 'protocol is bare',
  check({ path, imports }) {
    if (!isProduct(path) || homeOf(path) !== 'libs/protocol') return [];
    return imports
      .filter((name) => !name.startsWith('.') && name !== 'zod')
      .map(
        (name) => `protocol imports zod and nothing else, not ${name}: what needs more belongs to a package above it`,
      );
  },
};

// The client reaches Redis and the file that says where it is; the mailbox reads its own Lua, and Redis is handed to it.
const reach = /^(?:node:)?(?:fs|net|http|https|http2|dgram|tls|dns|child_process|worker_threads|timers|os)(?:\/|$)/;
const clock = /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bset(?:Timeout|Interval|Immediate)\(/;

const libsDecide: Rule = {
  name: 'libs reach nothing',
  check({ path, imports, code }) {
    if (!isProduct(path) || !/^libs\/(?:protocol|policy)\/src\//.test(path)) return [];
    const found = imports
      .filter((name) => reach.test(name))
      .map((name) => `${name} reaches out of a lib: take what it gives as an argument`);
    if (clock.test(code)) found.push('a lib reads the clock: take the time as an argument');
    return found;
  },
};

const outputIsPure: Rule = {
  name: 'output is pure',
  check({ path, imports }) {
    const folder = 'apps/worker/src/output/';
    if (!path.startsWith(folder) || !isProduct(path)) return [];
    return imports
      .filter(
        (name) =>
          !isInside(path, folder, name) && !/^(?:node:(?:buffer|string_decoder)|@shellfleet\/protocol)$/.test(name),
      )
      .map(
        (name) => `output stages are pure, so not ${name}: push and end take and give bytes; do the rest in the caller`,
      );
  },
};

const environmentInConfig: Rule = {
  name: 'environment in config.ts',
  check({ path, code }) {
    if (!isProduct(path) || !/^(?:apps|libs)\//.test(path) || path.endsWith('/config.ts')) return [];
    // Where a program or the SDK is entered, the whole environment may be handed to whoever parses it.
    const isEntrance = path.endsWith('/src/main.ts') || path === 'libs/client/src/fleet.ts';
    const read = isEntrance ? /\bprocess\.env\s*[.[?]/ : /\bprocess\.env\b/;
    return read.test(code) ? ['process.env is read by config.ts alone: take the setting as an argument'] : [];
  },
};

const sessionKey = String.raw`(?:sessionKeys|recordKey|payloadKey|answerKey|idempotencyKey)\(|\w*[kK]eys\.(?:queue|state|stream)\b`;
const write = String.raw`\.(?:xadd|xdel|xtrim|hset|hdel|hincrby|rpush|lpush|lrem|rpop|lpop|set|del|unlink|expire|pexpire)\(`;
const sessionKeyWrite = new RegExp(`${write}\\s*(?:${sessionKey})`);

const sessionKeysByScripts: Rule = {
  name: 'session keys by scripts',
  check({ path, code }) {
    if (!isProduct(path) || !/^(?:apps|libs)\//.test(path) || homeOf(path) === 'libs/mailbox') return [];
    if (!sessionKeyWrite.test(code)) return [];
    return ['session keys are written by the mailbox scripts alone: call one, or add one to libs/mailbox'];
  },
};

export const rules: Rule[] = [
  workspaceImports,
  frontDoors,
  bullmqInQueue,
  dockerodeInSandbox,
  protocolIsBare,
  libsDecide,
  outputIsPure,
  environmentInConfig,
  sessionKeysByScripts,
];

function onlyIn(name: string, folders: string[], instead: string): Rule {
  return {
    name: `${name} in one folder`,
    check({ path, imports }) {
      if (path.startsWith('tests/') || folders.some((folder) => path.startsWith(folder))) return [];
      return imports
        .filter((found) => packageOf(found) === name)
        .map(() => `${name} is named in ${folders.join(' and ')} only: ${instead}`);
    },
  };
}

function homeOf(path: string): string | undefined {
  return packageFolders.find((folder) => path.startsWith(`${folder}/`));
}

function packageOf(name: string): string {
  return name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/');
}

function isDeep(name: string): boolean {
  return name.startsWith(scope) && name.split('/').length > 2 && !sideDoors.includes(name);
}

function leavesHome(path: string, home: string | undefined, name: string): boolean {
  return home !== undefined && name.startsWith('.') && !isInside(path, `${home}/`, name);
}

function isInside(path: string, folder: string, name: string): boolean {
  return name.startsWith('.') && posix.join(posix.dirname(path), name).startsWith(folder);
}

/** Tests and benchmarks may reach for what they test with. */
function isProduct(path: string): boolean {
  return !/\.(?:test|bench)\.ts$/.test(path);
}
