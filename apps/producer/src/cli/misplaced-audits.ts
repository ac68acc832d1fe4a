import { hostFolderName } from '@shellfleet/sealing';
import type { HostFolder } from './read-audit.ts';

// A chain says itself of which host it is, and its key fits that name alone. So a copy of another host's audit is
// authentic, and only its place shows what it is: a host has one folder, that folder has its name, and no two folders
// have the same secret.

/** A finding about the place of a host's audit. */
export interface PlaceFinding {
  type: 'misplaced';
  host: string;
  where: string;
  message: string;
}

/** Audits that are in the folder of another host, or of which there are two. */
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
