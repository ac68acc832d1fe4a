import { z } from 'zod';
import { parseDurationText } from './duration-text.ts';
import { OIDC_SETTINGS } from './oidc-settings.ts';

export { OIDC_SETTINGS, type OidcValues } from './oidc-settings.ts';

// The settings of the HTTP API. Each has a variable, a flag of `shellfleet serve`, a default and a text.

const list = z
  .string()
  .default('')
  .transform((text) =>
    text
      .split(',')
      .map((item) => item.trim())
      .filter(Boolean),
  );
const port = z.coerce
  .number('must be a number')
  .int('must be a whole number')
  .min(0, 'must be 0 to 65535')
  .max(65_535, 'must be 0 to 65535');
const isOn = z.enum(['0', '1'], "must be '1' or '0'").default('0');
const origin = z.url({ protocol: /^https?$/, error: 'must be origins such as https://example.org' });
const duration = z
  .string()
  .transform((text) => parseDurationText(text) ?? Number.NaN)
  .pipe(
    z.number('must be a time such as 30s, or a number of milliseconds').min(0).max(3_600_000, 'must be at most 1h'),
  );

interface Setting {
  /** Flag of `shellfleet serve`. */
  flag: string;
  schema: z.ZodType;
  text: string;
}

export const API_SETTINGS = {
  SHELLFLEET_API_HOST: {
    flag: '--host <address>',
    schema: z.string().default('127.0.0.1'),
    text: 'address on which to listen; one that other machines reach needs TLS or --insecure-http; default: 127.0.0.1',
  },
  SHELLFLEET_API_PORT: {
    flag: '--port <n>',
    schema: port.optional(),
    text: 'port on which to listen; 0: a free one; default: 7410, or a free one if that is taken',
  },
  SHELLFLEET_API_TLS_CERT: {
    flag: '--tls-cert <file>',
    schema: z.string().optional(),
    text: 'certificate chain (PEM) of the server',
  },
  SHELLFLEET_API_TLS_KEY: { flag: '--tls-key <file>', schema: z.string().optional(), text: 'its private key (PEM)' },
  SHELLFLEET_API_INSECURE_HTTP: {
    flag: '--insecure-http',
    schema: isOn,
    text: 'listen without TLS on another address than loopback: keys and output can then be read on the way',
  },
  SHELLFLEET_API_ALLOWED_HOSTS: {
    flag: '--allowed-host <names>',
    schema: list,
    text: 'further names by which clients address the server, separated by commas',
  },
  SHELLFLEET_API_CORS_ORIGINS: {
    flag: '--cors-origin <origins>',
    schema: list.pipe(z.array(origin)),
    text: 'origins whose pages may use the API, separated by commas; default: none',
  },
  SHELLFLEET_API_RATE_LIMIT: {
    flag: '--rate-limit <n>',
    schema: z.coerce
      .number('must be a number')
      .int('must be a whole number')
      .min(1, 'must be at least 1')
      .default(1_000),
    text: 'requests that each key may make in a second; default: 1000',
  },
  SHELLFLEET_API_DRAIN: {
    flag: '--drain <time>',
    schema: duration.default(30_000),
    text: 'how long open requests may continue when the server stops; default: 30s',
  },
  SHELLFLEET_API_METRICS_PORT: {
    flag: '--metrics-port <n>',
    schema: port.optional(),
    text: 'port with /healthz, /readyz and /metrics for monitoring, which needs no key there; default: no such port',
  },
  SHELLFLEET_API_METRICS_HOST: {
    flag: '--metrics-host <address>',
    schema: z.string().default('127.0.0.1'),
    text: 'address of that port; default: 127.0.0.1',
  },
  SHELLFLEET_LOG_LEVEL: {
    flag: '--log-level <level>',
    schema: z
      .enum(['debug', 'info', 'warn', 'error', 'silent'], 'must be debug, info, warn, error or silent')
      .default('info'),
    text: 'least level of the lines of the log: debug, info, warn, error or silent; default: info',
  },
  ...OIDC_SETTINGS,
} as const satisfies Record<string, Setting>;

type Settings = typeof API_SETTINGS;
/** The value of each setting, by its variable. */
export type SettingValues = { [Name in keyof Settings]: z.output<Settings[Name]['schema']> };
