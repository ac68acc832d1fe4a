export { type Access, type AccessOptions, openAccess } from './access.ts';
export type { AccessLog } from './access-log.ts';
export { type BorrowedFleet, type ConnectFleet, Fleets } from './fleets.ts';
export { type OidcSettings, toOidcSettings } from './oidc/settings.ts';
export { type AllowedHosts, isLoopback, isOwnHost } from './own-host.ts';
export type { Principal } from './principal.ts';
export type { Validity } from './validities.ts';
