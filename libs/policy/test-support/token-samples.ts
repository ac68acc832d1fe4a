/** Returns a random whole number from 0 to below `below`. */
export type Random = (below: number) => number;

export interface Sample {
  type: string;
  /** The token with its surroundings, as a program would print it. */
  text: string;
  /** The part that must be redacted. */
  token: string;
}

const DIGITS = '0123456789';
const HEX = `${DIGITS}abcdef`;
const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const LOWER = UPPER.toLowerCase();
const ALNUM = UPPER + LOWER + DIGITS;
const URL_SAFE = `${ALNUM}-_`;
const BASE64 = `${ALNUM}+/`;

/** Returns a generator (Mulberry32) that gives the same numbers for the same seed everywhere. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

export function pick<T>(random: Random, from: ArrayLike<T>): T {
  return from[random(from.length)]!;
}

interface Maker {
  random: Random;
  some(length: number, from: string): string;
  uuid(): string;
}

/** Returns an invented token of every kind: each has the right shape, and none is in use. */
export function tokenSamples(random: Random): Sample[] {
  const some = (length: number, from: string): string => Array.from({ length }, () => pick(random, from)).join('');
  const uuid = (): string => [8, 4, 4, 4, 12].map((length) => some(length, HEX)).join('-');
  const pemBody = Array.from({ length: 6 }, () => some(64, BASE64)).join('\n');
  const makers = [tokensOfCodeTools, tokensOfClouds, tokensOfModelsAndPayments, tokensOfOthers];
  return [...makers.flatMap((make) => make({ random, some, uuid })), ...privateKeys(pemBody)];
}

function plain(type: string, token: string): Sample {
  return { type, token, text: token };
}

function within(type: string, before: string, token: string, behind = ''): Sample {
  return { type, token, text: before + token + behind };
}

function tokensOfCodeTools({ random, some, uuid }: Maker): Sample[] {
  return [
    plain('github_token', `gh${pick(random, 'pousr')}_${some(36, ALNUM)}`),
    plain('github_token', `github_pat_${some(22, ALNUM)}_${some(59, ALNUM)}`),
    plain('gitlab_token', `${pick(random, ['glpat-', 'gldt-', 'glrt-'])}${some(20, URL_SAFE)}`),
    plain('gitlab_token', `glpat-${some(30, ALNUM)}.01.${some(9, LOWER + DIGITS)}`),
    plain('bitbucket_token', `ATBB${some(32, ALNUM)}`),
    plain('atlassian_token', `ATATT3${some(186, URL_SAFE)}`),
    plain('circleci_token', `CCIPAT_${some(22, ALNUM)}_${some(40, HEX)}`),
    plain('buildkite_token', `bkua_${some(40, HEX)}`),
    plain('sonar_token', `squ_${some(40, HEX)}`),
    plain('npm_token', `npm_${some(36, ALNUM)}`),
    within('npm_token', '//registry.npmjs.org/:_authToken=', uuid()),
    plain('pypi_token', `pypi-AgEIcHlwaS5vcmc${some(120, URL_SAFE)}`),
    plain('rubygems_token', `rubygems_${some(48, HEX)}`),
    plain('nuget_key', `oy2${some(43, LOWER + DIGITS)}`),
    plain('cratesio_token', `cio${some(32, ALNUM)}`),
    plain('clojars_token', `CLOJARS_${some(60, LOWER + DIGITS)}`),
    plain('docker_token', `dckr_pat_${some(27, URL_SAFE)}`),
    within('docker_auth', '"auth": "', Buffer.from(`user:${some(14, ALNUM)}`).toString('base64'), '"'),
    plain('artifactory_key', `AKCp${some(69, ALNUM)}`),
    plain('artifactory_token', `cmVmdGtu${some(56, ALNUM)}`),
    within('terraform_token', some(14, ALNUM), `.atlasv1.${some(64, URL_SAFE)}`),
    plain('pulumi_token', `pul-${some(40, HEX)}`),
    plain('vault_token', `hvs.${some(95, URL_SAFE)}`),
    plain('doppler_token', `dp.pt.${some(43, ALNUM)}`),
    plain('sentry_token', `sntryu_${some(64, HEX)}`),
    plain('grafana_token', `glsa_${some(32, ALNUM)}_${some(8, HEX)}`),
    plain('newrelic_key', `NRAK-${some(27, UPPER + DIGITS)}`),
    plain('dynatrace_token', `dt0c01.${some(24, UPPER + DIGITS)}.${some(64, UPPER + DIGITS)}`),
    plain('postman_key', `PMAK-${some(24, HEX)}-${some(34, HEX)}`),
    within('sonar_token', 'sonar.login=', some(40, HEX)),
    within('codecov_token', 'CODECOV_TOKEN: ', uuid()),
    within('snyk_token', "SNYK_TOKEN='", uuid(), "'"),
  ];
}

function tokensOfClouds({ random, some, uuid }: Maker): Sample[] {
  return [
    plain('aws_access_key', `${pick(random, ['AKIA', 'ASIA'])}${some(16, `${UPPER}234567`)}`),
    within('aws_secret_key', 'aws_secret_access_key = ', some(40, BASE64)),
    within('aws_secret_key', '"SecretAccessKey": "', some(40, BASE64), '",'),
    within('aws_session_token', 'AWS_SESSION_TOKEN=', some(160, BASE64)),
    plain('aws_bedrock_key', `ABSK${some(128, BASE64)}`),
    plain('gcp_api_key', `AIza${some(35, URL_SAFE)}`),
    plain('gcp_oauth_token', `ya29.${some(80, URL_SAFE)}`),
    plain('gcp_client_secret', `GOCSPX-${some(28, URL_SAFE)}`),
    within('azure_storage_key', 'AccountName=a;AccountKey=', `${some(86, BASE64)}==`, ';Suffix'),
    within('azure_shared_access_key', 'SharedAccessKeyName=a;SharedAccessKey=', `${some(43, BASE64)}=`),
    within('azure_sas', 'https://a.blob.core.windows.net/c?sv=2024&sig=', `${some(43, ALNUM)}%3D`, '&se=1'),
    within('azure_client_secret', some(3, ALNUM), `8Q~${some(32, URL_SAFE)}`),
    plain('alibaba_key', `LTAI${some(20, ALNUM)}`),
    plain('tencent_key', `AKID${some(32, ALNUM)}`),
    plain('scaleway_key', `SCW${some(17, UPPER + DIGITS)}`),
    plain('digitalocean_token', `dop_v1_${some(64, HEX)}`),
    plain('heroku_key', `HRKU-${some(60, URL_SAFE)}`),
    within('heroku_key', 'HEROKU_API_KEY=', uuid()),
    plain('openshift_token', `sha256~${some(43, URL_SAFE)}`),
    plain('databricks_token', `dapi${some(32, HEX)}`),
    plain('cloudflare_ca_key', `v1.0-${some(24, HEX)}-${some(146, HEX)}`),
    within('cloudflare_key', 'CLOUDFLARE_API_TOKEN=', some(40, ALNUM)),
    plain('fly_token', `fo1_${some(43, URL_SAFE)}`),
    plain('netlify_token', `nfp_${some(36, ALNUM)}`),
    plain('render_key', `rnd_${some(32, ALNUM)}`),
    plain('supabase_token', `sbp_${some(40, HEX)}`),
    plain('planetscale_token', `pscale_tkn_${some(43, URL_SAFE)}`),
    plain('age_secret_key', `AGE-SECRET-KEY-1${some(58, 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L')}`),
    plain(
      'onepassword_key',
      `A3-${some(6, UPPER)}-${some(11, UPPER)}-${some(5, UPPER)}-${some(5, UPPER)}-${some(5, UPPER)}`,
    ),
    plain('onepassword_token', `ops_eyJ${some(300, ALNUM)}`),
  ];
}

function tokensOfModelsAndPayments({ random, some, uuid }: Maker): Sample[] {
  return [
    plain('anthropic_key', `sk-ant-api03-${some(93, URL_SAFE)}AA`),
    plain('openrouter_key', `sk-or-v1-${some(64, HEX)}`),
    plain('openai_key', `sk-proj-${some(74, URL_SAFE)}T3BlbkFJ${some(74, URL_SAFE)}`),
    plain('openai_key', `sk-${some(20, ALNUM)}T3BlbkFJ${some(20, ALNUM)}`),
    plain('huggingface_token', `hf_${some(34, UPPER + LOWER)}`),
    plain('groq_key', `gsk_${some(52, ALNUM)}`),
    plain('xai_key', `xai-${some(80, ALNUM)}`),
    plain('replicate_token', `r8_${some(37, ALNUM)}`),
    plain('perplexity_key', `pplx-${some(48, ALNUM)}`),
    plain('nvidia_key', `nvapi-${some(64, URL_SAFE)}`),
    plain('langsmith_key', `lsv2_pt_${some(32, HEX)}_${some(10, HEX)}`),
    plain('pinecone_key', `pcsk_${some(6, ALNUM)}_${some(60, ALNUM)}`),
    plain('tavily_key', `tvly-${some(32, ALNUM)}`),
    plain('stripe_key', `${pick(random, ['sk_live_', 'rk_test_'])}${some(24, ALNUM)}`),
    plain('stripe_webhook_secret', `whsec_${some(32, BASE64)}`),
    plain('elevenlabs_key', `sk_${some(48, HEX)}`),
    plain('square_token', `sq0atp-${some(22, URL_SAFE)}`),
    plain('braintree_token', `access_token$production$${some(16, LOWER + DIGITS)}$${some(32, HEX)}`),
    plain('shopify_token', `${pick(random, ['shpat_', 'shpss_'])}${some(32, HEX)}`),
    plain('razorpay_key', `rzp_live_${some(14, ALNUM)}`),
    plain('flutterwave_key', `FLWSECK_TEST-${some(32, HEX)}-X`),
    plain('plaid_token', `access-sandbox-${uuid()}`),
    plain('easypost_key', `EZAK${some(54, ALNUM)}`),
    plain('shellfleet_key', `sfk_${some(16, HEX)}_${some(43, URL_SAFE)}`),
    plain('shippo_token', `shippo_live_${some(40, HEX)}`),
    plain('duffel_token', `duffel_test_${some(43, URL_SAFE)}`),
  ];
}

function tokensOfOthers({ random, some, uuid }: Maker): Sample[] {
  const jwtPart = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return [
    plain('slack_token', `xoxb-${some(12, DIGITS)}-${some(12, DIGITS)}-${some(24, ALNUM)}`),
    plain('slack_token', `xapp-1-A${some(10, UPPER)}-${some(12, DIGITS)}-${some(64, HEX)}`),
    within(
      'slack_webhook',
      'https://hooks.slack.com/services/',
      `T${some(8, UPPER)}/B${some(8, UPPER)}/${some(24, ALNUM)}`,
    ),
    within('discord_webhook', 'https://discord.com/api/webhooks/', `${some(18, DIGITS)}/${some(68, URL_SAFE)}`),
    within('teams_webhook', 'https://a.webhook.office.com/webhookb2/x/IncomingWebhook/', `${some(32, HEX)}/${uuid()}`),
    plain(
      'discord_token',
      `${Buffer.from(`${1 + random(9)}${some(17, DIGITS)}`).toString('base64')}.${some(6, URL_SAFE)}.${some(38, URL_SAFE)}`,
    ),
    within('discord_secret', 'DISCORD_CLIENT_SECRET=', some(32, ALNUM)),
    within('telegram_token', `${some(10, DIGITS)}:`, `AA${some(33, URL_SAFE)}`),
    plain('twilio_key', `SK${some(32, HEX)}`),
    within('twilio_token', 'TWILIO_AUTH_TOKEN=', some(32, HEX)),
    plain('sendgrid_key', `SG.${some(22, URL_SAFE)}.${some(43, URL_SAFE)}`),
    plain('brevo_key', `xkeysib-${some(64, HEX)}-${some(16, ALNUM)}`),
    plain('mailgun_key', `key-${some(32, HEX)}`),
    within('mailchimp_key', 'MAILCHIMP_API_KEY=', `${some(32, HEX)}-us12`),
    plain('resend_key', `re_1${some(7, ALNUM)}_${some(24, ALNUM)}`),
    plain('facebook_token', `EAAC${some(160, ALNUM)}`),
    plain('linear_key', `lin_api_${some(40, ALNUM)}`),
    plain('notion_token', `ntn_${some(11, DIGITS)}${some(35, ALNUM)}`),
    plain('figma_token', `figd_${some(40, URL_SAFE)}`),
    plain('airtable_token', `pat${some(14, ALNUM)}.${some(64, HEX)}`),
    plain('typeform_token', `tfp_${some(44, ALNUM)}_${some(14, ALNUM)}`),
    within('datadog_key', 'DD_API_KEY=', some(32, HEX)),
    plain('jwt', `${jwtPart({ alg: 'HS256' })}.${jwtPart({ sub: some(9, ALNUM) })}.${some(43, URL_SAFE)}`),
    within('authorization', 'Authorization: Bearer ', some(40, URL_SAFE)),
    within('url_password', 'postgres://app:', some(16, ALNUM), '@db.internal:5432/app'),
  ];
}

function privateKeys(pemBody: string): Sample[] {
  const pem = `-----BEGIN RSA PRIVATE KEY-----\n${pemBody}\n-----END RSA PRIVATE KEY-----`;
  return [
    plain('private_key', pem),
    plain('private_key', pem.replaceAll('\n', '\r\n')),
    within('private_key', '{"private_key": "', pem.replaceAll('\n', '\\n'), '\\n"}'),
    within('private_key', '', `-----BEGIN PRIVATE KEY-----\n${pemBody}`, '\nthen the log went on.'),
  ];
}
