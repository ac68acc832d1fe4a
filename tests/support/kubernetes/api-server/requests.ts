import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { RESOURCES, type Resource } from './resources.ts';
import { selectedName } from './selectors.ts';
import { badRequest, unsupportedMediaType } from './status.ts';

/** A request for objects, as its path names them. */
export interface ObjectRequest {
  verb: string;
  group: string;
  resource: string;
  subresource: string | undefined;
  namespace: string | undefined;
  name: string;
  /** Description of the resource. Undefined for one that the server does not have. */
  type: Resource | undefined;
}

const pattern =
  /^\/(?:api\/v1|apis\/(?<group>[^/]+)\/(?<version>[^/]+))(?:\/namespaces\/(?<namespace>[^/]+)(?=\/))?\/(?<resource>[^/]+)(?:\/(?<name>[^/]+)(?:\/(?<subresource>.+))?)?$/;

/** Reads what a request asks for from its path. Returns undefined for a path without objects. */
export function parseRequest(method: string, { pathname, searchParams }: URL): ObjectRequest | undefined {
  const match = pattern.exec(pathname)?.groups;
  if (!match) return undefined;
  const { group = '', resource = '', subresource } = match;
  const type = RESOURCES.find((known) => known.group === group && known.resource === resource);
  const name = decodeURIComponent(match.name ?? '') || selectedName(searchParams.get('fieldSelector') ?? '') || '';
  const isCollection = match.name === undefined;
  const verb = verbOf(method, isCollection, /^(?:true|1)$/.test(searchParams.get('watch') ?? ''));
  // Requests for a namespace itself are authorized in that namespace.
  const namespace = match.namespace ?? (resource === 'namespaces' && name !== '' ? name : undefined);
  return { verb, group, resource, subresource, namespace, name, type };
}

function verbOf(method: string, isCollection: boolean, isWatch: boolean): string {
  if (method === 'GET' || method === 'HEAD') return isCollection ? (isWatch ? 'watch' : 'list') : 'get';
  if (method === 'DELETE') return isCollection ? 'deletecollection' : 'delete';
  return { POST: 'create', PUT: 'update', PATCH: 'patch' }[method] ?? method.toLowerCase();
}

/** Reads the body of a request as JSON. Returns undefined for none. */
export async function readBody(request: IncomingMessage): Promise<unknown> {
  const text = Buffer.concat(await request.toArray()).toString();
  if (text === '') return undefined;
  const type = request.headers['content-type'] ?? 'application/json';
  if (!/json/.test(type))
    throw unsupportedMediaType(
      'the body of the request was in an unknown format - accepted media types include: application/json',
    );
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badRequest(`couldn't get version/kind; json parse error: ${(error as Error).message}`);
  }
}

/** Returns the end of a name that the server chooses for `generateName`. */
export function randomSuffix(seed: string): string {
  return createHash('sha256').update(seed).digest('hex').slice(0, 5);
}
