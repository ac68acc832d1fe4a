import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readFleetFile } from '@shellfleet/client';
import { stateDirectory } from '@shellfleet/setup';

/** Names of variables whose values count as secrets. */
const SECRET_NAME = /key|secret|token|passw|credential|auth|private/i;
/** Shorter values are ordinary words, which must stay readable. */
const FEWEST_CHARACTERS = 6;

/** Finds the secrets that this process can reach: of the environment, the fleet and the state directory. */
export async function findSecrets(
  env: NodeJS.ProcessEnv,
  redisUrl: string | undefined,
): Promise<Record<string, string>> {
  const file = await readFleetFile(env).catch(() => undefined);
  const directory = stateDirectory(env);
  const kept = ['seal-key', 'api-key', 'api-header'].map((name) =>
    readFile(join(directory, name), 'utf8').catch(() => ''),
  );
  // SHELLFLEET_SECRET names variables whose values are secrets of sessions.
  const named = (env.SHELLFLEET_SECRET ?? '').split(/[\s,]+/);
  const ofEnv = Object.entries(env).filter(([name]) => SECRET_NAME.test(name) || named.includes(name));
  const values = [
    ...ofEnv.flatMap(([, value = '']) => [value, ...value.split(',')]),
    ...[redisUrl, env.SHELLFLEET_REDIS_URL, file?.redisUrl].flatMap(passwordsOf),
    ...(file?.sealKeys ?? []),
    file?.api?.key ?? '',
    ...(await Promise.all(kept)).map((text) => text.replace('Authorization: Bearer ', '')),
  ];
  const secrets = values.map((value) => value.trim()).filter(({ length }) => length >= FEWEST_CHARACTERS);
  return Object.fromEntries([...new Set(secrets)].map((value, index) => [`secret ${index}`, value]));
}

function passwordsOf(url: string | undefined): string[] {
  const [, password = ''] = /^[^/]*\/\/[^@/]*?:([^@/]*)@/.exec(url ?? '') ?? [];
  const [, ofSentinels = ''] = /[?&]sentinel-password=([^&#]*)/.exec(url ?? '') ?? [];
  return [password, ofSentinels].flatMap(writtenForms);
}

function writtenForms(password: string): string[] {
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}
