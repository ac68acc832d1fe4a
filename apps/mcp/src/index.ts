export type { StdioIdentity } from './connections/stdio-connection.ts';
export { type HttpSettings, readOidc } from './http/http-settings.ts';
export { serveMcpOverHttp } from './serve-http.ts';
export { serveMcpOverStdio } from './serve-stdio.ts';
export type { McpSettings } from './settings.ts';
