import { hostFolderName } from '@shellfleet/sealing';
import type { HostFolder } from './read-audit.ts';

// A chain and its key name their host, so a copy of another host's audit is authentic, and only its place shows that it
// is a copy. Each host has one folder with its name and a secret that no other folder has.

/** A finding about the place of a host's audit. */
export interface PlaceFinding {
  type: 'misplaced';
  host: string;
  where: string;
  message: string;
}

/** Finds audits in the folder of another host, and audits that exist twice. */
export function findMisplaced(folders: readonly HostFolder[]): PlaceFinding[] {
  return folders.flatMap((folder, index) => {
    const { audit, auditPath, key } = folder;
    if (audit === undefined) return [];
    const { host, namespace } = audit;
    const before = folders.slice(0, index);
    const twin = before.find((other) => other.audit?.host === host && other.audit.namespace === namespace);
    const copied = key === undefined ? undefined : before.find((other) => other.key === key);
    return [
      ...(isFolderOf(folder, host) ? [] : [`this is not the folder of host ${host}`]),
      ...(twin === undefined ? [] : [`${twin.auditPath} is an audit of the same host`]),
      ...(copied === undefined ? [] : [`its host has the key of ${copied.path}: one of the two was copied`]),
    ].map((message) => ({ type: 'misplaced', host, where: auditPath, message }) as const);
  });
}

export const isFolderOf = ({ name, ownId }: HostFolder, host: string) =>
  name === 'default' ? ownId === host : name === hostFolderName(host);
