import { randomBytes } from 'node:crypto';
import { type ApiFailure, forbidden, forbiddenPath } from './status.ts';

/** Rule of a Role, in the form of rbac.authorization.k8s.io/v1. */
export interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
}

export interface User {
  name: string;
  /** Rules of Roles, by namespace. The rules of `*` are those of a ClusterRole that is bound for the whole cluster. */
  rules: Record<string, Rule[]>;
}

/** What a request asks for. */
export interface Asked {
  verb: string;
  group: string;
  /** Resource with its subresource, such as `pods/log`. */
  resource: string;
  kind: string;
  namespace: string | undefined;
  name: string;
}

/** User whom every request without a token has. */
export const ANONYMOUS: User = { name: 'system:anonymous', rules: {} };

const PUBLIC = /^\/(?:version|healthz|livez|readyz)\/?/;
const DISCOVERY = /^\/(?:apis?|openapi)(?:\/|$)/;

/** Tokens and what their users may do. */
export class Access {
  readonly #users = new Map<string, User>();

  /** Makes a token for a user. */
  add(user: User): string {
    const token = randomBytes(24).toString('base64url');
    this.#users.set(token, user);
    return token;
  }

  revoke(token: string): void {
    this.#users.delete(token);
  }

  /** Returns the user of an Authorization header, or undefined for a token that is not valid. */
  userOf(header: string | undefined): User | undefined {
    if (header === undefined) return ANONYMOUS;
    const token = /^Bearer (\S+)$/i.exec(header)?.[1];
    return token === undefined ? undefined : this.#users.get(token);
  }
}

/** Returns the refusal of a request for objects, or undefined where a rule of the user allows it. */
export function refusal(user: User, asked: Asked): ApiFailure | undefined {
  const rules = [...(user.rules['*'] ?? []), ...(asked.namespace ? (user.rules[asked.namespace] ?? []) : [])];
  if (rules.some((rule) => allows(rule, asked))) return undefined;
  const what = `resource "${asked.resource}" in API group "${asked.group}"`;
  const where = asked.namespace ? `in the namespace "${asked.namespace}"` : 'at the cluster scope';
  const [resource = ''] = asked.resource.split('/');
  const type = { group: asked.group, resource, kind: asked.kind };
  return forbidden(type, asked.name, `User "${user.name}" cannot ${asked.verb} ${what} ${where}`);
}

/** Returns the refusal of a request for a path without objects, such as `/api`. */
export function pathRefusal(user: User, verb: string, path: string): ApiFailure | undefined {
  if (PUBLIC.test(path) || (DISCOVERY.test(path) && user !== ANONYMOUS)) return undefined;
  return forbiddenPath(`User "${user.name}" cannot ${verb} path "${path}"`);
}

function allows({ apiGroups, resources, verbs, resourceNames = [] }: Rule, asked: Asked): boolean {
  const has = (list: readonly string[], one: string) => list.includes('*') || list.includes(one);
  if (!has(apiGroups, asked.group) || !has(resources, asked.resource) || !has(verbs, asked.verb)) return false;
  return resourceNames.length === 0 || resourceNames.includes(asked.name);
}
