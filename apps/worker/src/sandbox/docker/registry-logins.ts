import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { tryJson } from '@shellfleet/protocol';
import type { Docker } from '@shellfleet/vendor/dockerode';
import { z } from 'zod';

// Logins for registries, as `docker login` stores them: in a file, or in a credential helper that the file names.

/** Server that stands for docker.io in such files. */
const DOCKER_HUB = 'https://index.docker.io/v1/';
const HELPER_TIMEOUT_MS = 10_000;

const helperName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/);
const loginsSchema = z.object({
  auths: z
    .record(z.string(), z.object({ auth: z.string().optional(), identitytoken: z.string().optional() }))
    .default({}),
  credHelpers: z.record(z.string(), helperName).default({}),
  credsStore: helperName.optional(),
});
const helperReplySchema = z.object({ Username: z.string(), Secret: z.string() });

export interface LoginFile {
  /** Path of a `config.json` of the Docker command line. It is read for every pull. */
  path: string;
  /** Whether the operator named the file. The user's own file may be missing. */
  isRequired: boolean;
  /** Environment of credential helpers. */
  env: Record<string, string>;
}

/** Returns the login for a registry, if there is one. Throws a sentence without secrets when it cannot be read. */
export async function readLogin(registry: string, file: LoginFile): Promise<Docker.AuthConfig | undefined> {
  const content = await readFile(file.path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' && !file.isRequired) return undefined;
    throw new Error(`the file of its logins, ${file.path}, cannot be read (${error.code})`);
  });
  if (content === undefined) return undefined;
  const parsed = loginsSchema.safeParse(tryJson(content));
  if (!parsed.success) throw new Error(`the file of its logins, ${file.path}, is not a config.json of Docker`);
  const { auths, credHelpers, credsStore } = parsed.data;
  const server = registry === 'docker.io' ? DOCKER_HUB : registry;
  const helper = findOf(credHelpers, server) ?? credsStore;
  if (helper !== undefined) return askHelper(helper, server, file.env);
  const { auth, identitytoken } = findOf(auths, server) ?? {};
  if (identitytoken) return { serveraddress: server, username: '', password: '', identitytoken } as Docker.AuthConfig;
  if (!auth) return undefined;
  const [username = '', ...password] = Buffer.from(auth, 'base64').toString().split(':');
  return { serveraddress: server, username, password: password.join(':') };
}

/** Returns the value of a server whose key may have a scheme and a path. */
function findOf<T>(values: Record<string, T>, server: string): T | undefined {
  const plain = (name: string) => name.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
  return Object.entries(values).find(([name]) => plain(name) === plain(server))?.[1];
}

async function askHelper(
  helper: string,
  server: string,
  env: Record<string, string>,
): Promise<Docker.AuthConfig | undefined> {
  const program = `docker-credential-${helper}`;
  const failed = () => new Error(`the credential helper ${program} of this host gave no login for it`);
  const child = spawn(program, ['get'], { env, stdio: ['pipe', 'pipe', 'ignore'], timeout: HELPER_TIMEOUT_MS });
  child.stdin.on('error', () => {}).end(server);
  const ended = new Promise<number | null>((resolve) =>
    child.once('error', () => resolve(null)).once('close', resolve),
  );
  const [reply, exitCode] = await Promise.all([text(child.stdout), ended]);
  if (exitCode !== 0 && /credentials not found/i.test(reply)) return undefined;
  const { success, data } = helperReplySchema.safeParse(tryJson(reply));
  if (exitCode !== 0 || !success) throw failed();
  const { Username: username, Secret: secret } = data;
  // Helpers give a token of the registry with this name in place of a user.
  if (username === '<token>')
    return { serveraddress: server, username: '', password: '', identitytoken: secret } as Docker.AuthConfig;
  return { serveraddress: server, username, password: secret };
}
