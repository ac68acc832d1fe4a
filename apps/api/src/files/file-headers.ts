import type { FileInfo } from '@shellfleet/client';

/** Returns the headers of a file: a browser stores it under its name, and never shows it. */
export function fileHeaders(name: string): Record<string, string> {
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16)}`);
  return { 'content-disposition': `attachment; filename*=UTF-8''${encoded}` };
}

/** What identifies a version of a file. */
export interface Version {
  etag: string;
  'last-modified': string;
}

/** Returns the version of a file. That of the target of a link is not known. */
export function versionOf({ type, size, modifiedAt }: FileInfo): Version | undefined {
  if (type !== 'file') return undefined;
  const at = new Date(modifiedAt);
  return { etag: `"${size.toString(16)}-${at.getTime().toString(16)}"`, 'last-modified': at.toUTCString() };
}

interface Conditions {
  'if-range'?: string | undefined;
  'if-none-match'?: string | undefined;
}

/** Tells whether a range is of the version that the client has, if it says which one it has. */
export function isOfVersion({ 'if-range': given }: Conditions, version: Version | undefined): boolean {
  return given === undefined || (version !== undefined && Object.values(version).includes(given));
}

/** Tells whether the client has this version already. */
export function hasVersion({ 'if-none-match': given }: Conditions, version: Version | undefined): boolean {
  if (given === undefined || version === undefined) return false;
  return given.split(',').some((one) => ['*', version.etag].includes(one.trim().replace(/^W\//, '')));
}
