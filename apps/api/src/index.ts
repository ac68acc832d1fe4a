export { type ApiConfig, ApiConfigError, readApiConfig } from './config/config.ts';
export { type ApiServer, createServer, type ServerDeps } from './serve.ts';
export { startApi } from './start-api.ts';
