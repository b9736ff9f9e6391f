//! Other ways out than mail: an Alertmanager, a webhook.
