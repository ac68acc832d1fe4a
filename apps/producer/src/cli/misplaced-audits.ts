import { hostDirectoryName } from '@shellfleet/sealing';
import type { HostDirectory } from './read-audit.ts';

// A chain and its key name their host, so a copy of another host's audit verifies. Only its place shows that it is a
// copy: each host has one directory with its name, and with a secret that no other directory has.

/** A finding about the place of a host's audit. */
export interface PlaceFinding {
  type: 'misplaced';
  host: string;
  where: string;
  message: string;
}

/** Finds audits in the directory of another host, and audits that exist twice. */
export function findMisplaced(directories: readonly HostDirectory[]): PlaceFinding[] {
  return directories.flatMap((directory, index) => {
    const { audit, auditPath, key } = directory;
    if (audit === undefined) return [];
    const { host, namespace } = audit;
    const before = directories.slice(0, index);
    const twin = before.find((other) => other.audit?.host === host && other.audit.namespace === namespace);
    const copied = key === undefined ? undefined : before.find((other) => other.key === key);
    return [
      ...(isDirectoryOf(directory, host) ? [] : [`this is not the directory of host ${host}`]),
      ...(twin === undefined ? [] : [`${twin.auditPath} is an audit of the same host`]),
      ...(copied === undefined ? [] : [`its host has the key of ${copied.path}: one of the two was copied`]),
    ].map((message) => ({ type: 'misplaced', host, where: auditPath, message }) as const);
  });
}

export const isDirectoryOf = ({ name, ownId }: HostDirectory, host: string) =>
  name === 'default' ? ownId === host : name === hostDirectoryName(host);
