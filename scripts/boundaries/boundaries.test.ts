import { expect, test } from 'vitest';
import { readSource } from './read-source.ts';
import { rules } from './rules.ts';

const check = (path: string, text: string): string[] => {
  const file = readSource(path, text);
  return rules.filter((rule) => rule.check(file).length > 0).map((rule) => rule.name);
};

test.each([
  ['libs/policy/src/a.ts', "import { Fleet } from '@shellfleet/client';", 'workspace imports'],
  ['apps/worker/src/a.ts', "import '@shellfleet/producer';", 'workspace imports'],
  ['libs/concurrency/src/a.ts', "import { LIMITS } from '@shellfleet/protocol';", 'workspace imports'],
  ['apps/worker/src/a.ts', "import x from '@shellfleet/protocol/src/ids.ts';", 'front doors'],
  ['libs/client/src/a.ts', "export * from '../../protocol/src/ids.ts';", 'front doors'],
  ['apps/worker/src/a.ts', "import type { Queue } from 'bullmq';", 'bullmq in one folder'],
  ['libs/client/src/queue/a.ts', "import { Queue } from 'bullmq';", 'bullmq in one folder'],
  ['libs/mailbox/src/a.ts', "import { grant } from '@shellfleet/admission';", 'workspace imports'],
  ['apps/worker/src/a.ts', "import Docker from 'dockerode';", 'dockerode in one folder'],
  ['infra/setup/src/a.ts', "import Docker from 'dockerode';", 'dockerode in one folder'],
  ['libs/protocol/src/a.ts', "import { createHash } from 'node:crypto';", 'protocol is bare'],
  ['libs/policy/src/a.ts', "import {\n  readFile,\n} from 'node:fs/promises';", 'libs reach nothing'],
  ['libs/policy/src/a.ts', 'export const now = () => Date.now();', 'libs reach nothing'],
  ['apps/worker/src/output/a.ts', "import { log } from '../log.ts';", 'output is pure'],
  ['apps/worker/src/output/a.ts', "await import('pino');", 'output is pure'],
  ['apps/worker/src/a.ts', 'const debug = process.env.DEBUG;', 'environment in config.ts'],
  ['apps/worker/src/main.ts', 'const debug = process.env.DEBUG;', 'environment in config.ts'],
  ['libs/client/src/a.ts', 'await redis.xadd(sessionKeys(ns, t, s).stream);', 'session keys by scripts'],
  ['apps/worker/src/a.ts', 'await redis.hset(keys.state, field, 1);', 'session keys by scripts'],
])('finds in %s: %s', (path, text, rule) => {
  expect(check(path, text)).toEqual([rule]);
});

test.each([
  ['libs/admission/src/a.ts', "import { Queue } from 'bullmq';"],
  ['apps/worker/src/sandbox/docker/a.ts', "import Docker from 'dockerode';"],
  ['apps/worker/src/output/a.ts', "import { cut } from './cut.ts';"],
  ['apps/worker/src/config.ts', 'export const level = process.env.LEVEL;'],
  ['apps/worker/src/main.ts', 'await main(process.env);'],
  ['apps/worker/src/a.ts', 'await redis.hdel(fleet.owners, member);\nawait redis.xread(keys.stream);'],
  ['infra/setup/src/a.ts', "import { buildKeeper } from '@shellfleet/keeper/build';"],
  ['libs/policy/src/a.ts', "// import x from 'node:fs';\nconst text = 'Date.now()';\nconst s = `import 'bullmq'`;"],
  ['libs/policy/src/a.test.ts', "import { readFile } from 'node:fs/promises';"],
])('lets %s pass: %s', (path, text) => {
  expect(check(path, text)).toEqual([]);
});
