import { byteSet } from '../../bytes.ts';
import { assigned, BASE64_CHARS, DOTTED_CHARS, INSIDE_DATA, INSIDE_WORD, type TokenKind } from '../token-kind.ts';

const PATH_CHARS = byteSet('A-Za-z0-9_/.+-');

/** Language models, payments, chat, mail and other services with API keys. */
export const SERVICES: readonly TokenKind[] = [
  { type: 'anthropic_key', anchors: ['sk-ant-'], shape: /^sk-ant-[A-Za-z0-9_-]{20,200}/ },
  { type: 'openrouter_key', anchors: ['sk-or-v1-'], shape: /^sk-or-v1-[a-f0-9]{64}/ },
  {
    type: 'openai_key',
    anchors: ['sk-'],
    notAfter: byteSet('A-Za-z0-9_-'),
    shape: /^sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,250}|[A-Za-z0-9]{32,100})/,
  },
  {
    type: 'huggingface_token',
    anchors: ['hf_', 'api_org_'],
    notAfter: INSIDE_WORD,
    shape: /^(?:hf|api_org)_[A-Za-z0-9]{34,40}(?![A-Za-z0-9])/,
  },
  { type: 'groq_key', anchors: ['gsk_'], notAfter: INSIDE_WORD, shape: /^gsk_[A-Za-z0-9]{52}(?![A-Za-z0-9])/ },
  { type: 'xai_key', anchors: ['xai-'], notAfter: INSIDE_WORD, shape: /^xai-[A-Za-z0-9]{70,90}/ },
  { type: 'replicate_token', anchors: ['r8_'], notAfter: INSIDE_WORD, shape: /^r8_[A-Za-z0-9]{37}(?![A-Za-z0-9])/ },
  { type: 'perplexity_key', anchors: ['pplx-'], shape: /^pplx-[A-Za-z0-9]{48,64}/ },
  { type: 'nvidia_key', anchors: ['nvapi-'], shape: /^nvapi-[A-Za-z0-9_-]{60,80}/ },
  { type: 'langsmith_key', anchors: ['lsv2_pt_', 'lsv2_sk_'], shape: /^lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}/ },
  { type: 'pinecone_key', anchors: ['pcsk_'], notAfter: INSIDE_WORD, shape: /^pcsk_[A-Za-z0-9_]{50,80}/ },
  { type: 'tavily_key', anchors: ['tvly-'], shape: /^tvly-[A-Za-z0-9-]{20,64}/ },
  {
    type: 'stripe_key',
    anchors: ['sk_live_', 'sk_test_', 'sk_prod_', 'rk_live_', 'rk_test_', 'rk_prod_'],
    notAfter: byteSet('A-Za-z0-9'),
    shape: /^[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,200}/,
  },
  {
    type: 'stripe_webhook_secret',
    anchors: ['whsec_'],
    notAfter: INSIDE_WORD,
    chars: BASE64_CHARS,
    shape: /^whsec_[A-Za-z0-9+/]{24,64}={0,2}/,
  },
  { type: 'elevenlabs_key', anchors: ['sk_'], notAfter: INSIDE_WORD, shape: /^sk_[a-f0-9]{48}(?![A-Za-z0-9])/ },
  {
    type: 'square_token',
    anchors: ['sq0atp-', 'sq0csp-', 'EAAA'],
    notAfter: INSIDE_DATA,
    shape: /^(?:sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43}|EAAA[A-Za-z0-9_-]{60}(?![A-Za-z0-9_-]))/,
  },
  {
    type: 'braintree_token',
    anchors: ['access_token$'],
    chars: byteSet('a-z0-9$'),
    shape: /^access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}/,
  },
  {
    type: 'shopify_token',
    anchors: ['shpat_', 'shpca_', 'shppa_', 'shpss_'],
    shape: /^shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}/,
  },
  { type: 'razorpay_key', anchors: ['rzp_live_', 'rzp_test_'], shape: /^rzp_(?:live|test)_[A-Za-z0-9]{14}/ },
  { type: 'flutterwave_key', anchors: ['FLWSECK'], shape: /^FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,40}(?:-X)?/ },
  {
    type: 'plaid_token',
    anchors: ['access-sandbox-', 'access-development-', 'access-production-'],
    shape: /^access-(?:sandbox|development|production)-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}/,
  },
  {
    type: 'easypost_key',
    anchors: ['EZAK', 'EZTK'],
    notAfter: INSIDE_DATA,
    shape: /^EZ[AT]K[A-Za-z0-9]{54}(?![A-Za-z0-9])/,
  },
  {
    type: 'shellfleet_key',
    anchors: ['sfk_'],
    notAfter: INSIDE_WORD,
    shape: /^sfk_[a-f0-9]{16}_[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])/,
  },
  { type: 'shippo_token', anchors: ['shippo_live_', 'shippo_test_'], shape: /^shippo_(?:live|test)_[A-Fa-f0-9]{40}/ },
  { type: 'duffel_token', anchors: ['duffel_live_', 'duffel_test_'], shape: /^duffel_(?:live|test)_[A-Za-z0-9_-]{43}/ },
  {
    type: 'slack_token',
    anchors: ['xoxb-', 'xoxp-', 'xoxa-', 'xoxo-', 'xoxr-', 'xoxs-', 'xoxe-', 'xoxe.', 'xapp-'],
    chars: DOTTED_CHARS,
    shape: /^(?:xox[abeoprs](?:\.xox[bp])?-(?=[A-Za-z-]{0,4}\d)|xapp-\d-)[A-Za-z0-9-]{10,250}/,
  },
  {
    type: 'slack_webhook',
    anchors: ['hooks.slack.com/'],
    chars: PATH_CHARS,
    shape: /^(?<keep>hooks\.slack\.com\/(?:services|workflows|triggers)\/)[A-Za-z0-9+/_-]{30,80}/,
  },
  {
    type: 'discord_webhook',
    anchors: ['/api/webhooks/'],
    chars: PATH_CHARS,
    shape: /^(?<keep>\/api\/webhooks\/)\d{17,20}\/[A-Za-z0-9_-]{60,72}/,
  },
  {
    type: 'teams_webhook',
    anchors: ['/IncomingWebhook/'],
    chars: PATH_CHARS,
    shape: /^(?<keep>\/IncomingWebhook\/)[A-Za-z0-9]{32}\/[a-f0-9-]{36}/,
  },
  {
    type: 'discord_token',
    anchors: discordBeginnings(),
    notAfter: INSIDE_DATA,
    chars: DOTTED_CHARS,
    shape: /^[MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_-])/,
  },
  assigned(
    'discord_secret',
    ['discord_client_secret', 'discord_secret', 'discord_token', 'discord_bot'],
    '(?:[a-f0-9]{64}|[A-Za-z0-9_-]{32})',
    'A-Za-z0-9_-',
  ),
  { type: 'telegram_token', anchors: [':AA'], shape: /^(?<keep>:)AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])/ },
  {
    type: 'twilio_key',
    anchors: [...'0123456789abcdefABCDEF'].map((digit) => `SK${digit}`),
    notAfter: INSIDE_DATA,
    shape: /^SK[A-Fa-f0-9]{32}(?![A-Za-z0-9])/,
  },
  assigned('twilio_token', ['twilio_auth', 'twilio_token', 'twilio_secret', 'twilioauth'], '[a-f0-9]{32}', 'A-Za-z0-9'),
  {
    type: 'sendgrid_key',
    anchors: ['SG.'],
    notAfter: INSIDE_WORD,
    chars: DOTTED_CHARS,
    shape: /^SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}/,
  },
  { type: 'brevo_key', anchors: ['xkeysib-', 'xsmtpsib-'], shape: /^x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}/ },
  { type: 'mailgun_key', anchors: ['key-'], notAfter: INSIDE_DATA, shape: /^key-[a-f0-9]{32}(?![A-Za-z0-9])/ },
  assigned('mailchimp_key', ['mailchimp'], '[a-f0-9]{32}-us\\d{1,2}', 'A-Za-z0-9-'),
  {
    type: 'resend_key',
    anchors: ['re_'],
    notAfter: INSIDE_WORD,
    shape: /^re_(?=[A-Za-z]*\d)[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![A-Za-z0-9])/,
  },
  {
    type: 'facebook_token',
    anchors: ['EAAC', 'EAAM', 'EAAB', 'EAAG'],
    notAfter: INSIDE_DATA,
    shape: /^EAA[ABCGM][A-Za-z0-9]{90,400}/,
  },
  { type: 'linear_key', anchors: ['lin_api_'], shape: /^lin_api_[A-Za-z0-9]{40}/ },
  {
    type: 'notion_token',
    anchors: ['ntn_', 'secret_'],
    notAfter: INSIDE_WORD,
    shape: /^(?:ntn_\d{11}[A-Za-z0-9]{35}|secret_[A-Za-z0-9]{43}(?![A-Za-z0-9]))/,
  },
  { type: 'figma_token', anchors: ['figd_'], notAfter: INSIDE_WORD, shape: /^figd_[A-Za-z0-9_-]{38,60}/ },
  {
    type: 'airtable_token',
    anchors: ['pat'],
    notAfter: INSIDE_DATA,
    chars: DOTTED_CHARS,
    shape: /^pat[A-Za-z0-9]{14}\.[a-f0-9]{64}/,
  },
  {
    type: 'typeform_token',
    anchors: ['tfp_'],
    notAfter: INSIDE_WORD,
    chars: byteSet('A-Za-z0-9_.=-'),
    shape: /^tfp_[A-Za-z0-9_.=-]{44,64}/,
  },
  assigned(
    'datadog_key',
    ['datadog_api', 'datadog_app', 'dd_api_key', 'dd_app_key'],
    '(?:[a-f0-9]{40}|[a-f0-9]{32})',
    'A-Za-z0-9',
  ),
];

/**
 * Returns the beginnings of Discord tokens. A token begins with a decimal number in base64, and three digits have few
 * encodings.
 */
function discordBeginnings(): string[] {
  const numbers = Array.from({ length: 900 }, (_, index) => String(100 + index));
  const encoded = numbers.map((number) => Buffer.from(number).toString('base64').slice(0, 3));
  return [...new Set(encoded)].filter((text) => /^[MNO]/.test(text));
}
