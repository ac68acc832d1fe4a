import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiProcess, startApiProcess } from '../support/api/api-process.ts';
import { ReplyCheck, sendRaw } from '../support/api/openapi-replies.ts';
import { type ApiDocument, type KnownIds, type Operation, requestsFor } from '../support/api/openapi-requests.ts';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';

// Promise: whatever a client with a key sends, the API answers as its own OpenAPI document says: with a documented
// status and a body of the documented form, and never with an error of its own.

/** Longest time of the requests. More time finds more. */
const SECONDS = Number(process.env.SHELLFLEET_FUZZ_SECONDS ?? 6);
const REQUESTS_PER_SECOND = 3;
const AT_ONCE = 6;

let stage: ClientStage;
let server: ApiProcess;
let key: string;
let document: ApiDocument;
let known: KnownIds;

beforeAll(async () => {
  stage = await setClientStage();
  const [fleet] = await Promise.all([stage.connect(), stage.startHost()]);
  const { own, namespace, sealKey } = stage;
  server = await startApiProcess({ redisUrl: own.url, namespace, sealKey });
  const scopes = ['submit', 'read', 'approve', 'admin'] as const;
  ({ key } = await fleet.keys.create({ name: 'fuzz', scopes: [...scopes] }));
  const described = await fetch(`${server.url}/openapi.json`, { headers: { authorization: `Bearer ${key}` } });
  document = (await described.json()) as ApiDocument;
  const session = await fleet.session('known');
  const command = await session.submit('echo hi');
  await command.result();
  await session.files.write('/known', 'text');
  await fleet.batches.submit([{ id: 'task', script: 'true' }], { name: 'nightly' });
  known = { sessions: ['known', 'other'], commands: [command.id], batches: ['nightly'] };
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await stage?.[Symbol.asyncDispose]();
});

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );

describe('the HTTP API', () => {
  test(
    'answers valid, boundary and broken requests as its OpenAPI document says',
    async () => {
      const check = new ReplyCheck(document);
      const left = operations();
      // Each operation gets its share of the time.
      const limitMs = (SECONDS * 1_000 * AT_ONCE) / left.length;
      const fuzz = async () => {
        for (let next = left.shift(); next !== undefined; next = left.shift()) await fuzzOne(next, check, limitMs);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, fuzz));
      expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    },
    (SECONDS + 60) * 1_000,
  );
});

interface Place {
  method: string;
  path: string;
  operation: Operation;
}

async function fuzzOne(place: Place, check: ReplyCheck, limitMs: number): Promise<void> {
  const until = performance.now() + limitMs;
  await fc.assert(
    fc.asyncProperty(requestsFor(document, place, known), async (request) => {
      if (performance.now() > until) return;
      const reply = await sendRaw(server.url, key, request);
      const problem = reply === undefined ? undefined : check.problemOf(place.operation, reply);
      if (problem !== undefined) throw new Error(problem);
    }),
    { numRuns: REQUESTS_PER_SECOND * SECONDS },
  );
}
