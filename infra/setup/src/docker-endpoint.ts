import { request } from 'node:http';
import type { Readable } from 'node:stream';

/** Where an engine listens, as `http.request` wants it. */
export type DockerEndpoint = { dockerHost: string; socketPath?: string; host?: string; port?: number };

export function parseDockerHost(dockerHost: string): DockerEndpoint | undefined {
  if (dockerHost.startsWith('unix://')) return { dockerHost, socketPath: dockerHost.slice('unix://'.length) };
  const tcp = /^(?:tcp|http):\/\/([^/:]+|\[[^\]]+\]):(\d+)\/?$/.exec(dockerHost);
  if (tcp) return { dockerHost, host: tcp[1]!.replace(/^\[|\]$/g, ''), port: Number(tcp[2]) };
  return undefined;
}

/** Where an engine may already be listening, most wanted first. */
export function candidateDockerHosts(env: NodeJS.ProcessEnv, home: string): string[] {
  if (env.DOCKER_HOST) return [env.DOCKER_HOST];
  const sockets = ['/var/run/docker.sock', `${home}/.docker/run/docker.sock`, `${home}/.colima/default/docker.sock`];
  if (env.XDG_RUNTIME_DIR) sockets.push(`${env.XDG_RUNTIME_DIR}/docker.sock`);
  return sockets.map((path) => `unix://${path}`);
}

export type DockerAnswer = { status: number; body: string };

export type DockerRequest = {
  method?: string;
  path: string;
  body?: Readable | string;
  contentType?: string;
  /** Without an answer for this long, the request is given up; 5 min if not given, for an import of an image is slow. */
  idleTimeoutMs?: number;
  signal?: AbortSignal;
};

const LONGEST_SILENCE_MS = 300_000;

/**
 * One request to the engine's HTTP API. Set-up needs five calls of it and no client library: the one in use belongs to
 * the worker's sandbox folder.
 */
export function callDocker(endpoint: DockerEndpoint, call: DockerRequest): Promise<DockerAnswer> {
  return new Promise((resolve, reject) => {
    const { socketPath, host, port } = endpoint;
    // Node's agent has a limit of its own, of seconds, where none is given.
    const timeout = call.idleTimeoutMs ?? LONGEST_SILENCE_MS;
    const headers: Record<string, string> = call.contentType ? { 'content-type': call.contentType } : {};
    const options = {
      socketPath,
      host,
      port,
      method: call.method ?? 'GET',
      path: call.path,
      headers,
      signal: call.signal,
    };
    const sent = request({ ...options, timeout }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }));
      answer.on('error', reject);
    });
    sent.on('timeout', () => sent.destroy(new Error(`no answer from the Docker engine in ${timeout} ms`)));
    sent.on('error', reject);
    if (call.body === undefined || typeof call.body === 'string') sent.end(call.body);
    else call.body.on('error', (error) => sent.destroy(error)).pipe(sent);
  });
}

/** The engine's version, or undefined when nothing answers there. */
export async function readEngineVersion(endpoint: DockerEndpoint): Promise<string | undefined> {
  try {
    const answer = await callDocker(endpoint, { path: '/version', idleTimeoutMs: 5_000 });
    const parsed: unknown = answer.status === 200 ? JSON.parse(answer.body) : undefined;
    if (typeof parsed === 'object' && parsed !== null && 'Version' in parsed) return String(parsed.Version);
  } catch {
    // Not there, not readable by this user, or not an engine: all the same to the caller, who tries the next one.
  }
  return undefined;
}
