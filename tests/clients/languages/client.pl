# perl client.pl variable|address PROMPT: one answer whole and one streamed, printed as they came.
use strict;
use warnings;
use JSON::PP;
use LWP::UserAgent;

my ($how, $prompt) = @ARGV;
my $address = "https://api.openai.com/v1";
my $base    = $how eq "variable" ? $ENV{OPENAI_BASE_URL} // $address : $address;
my $json    = JSON::PP->new->canonical;
my $client  = LWP::UserAgent->new;
for my $stream (JSON::PP::false, JSON::PP::true) {
    my $asked = { model => "gpt-x", stream => $stream, messages => [ { role => "user", content => $prompt } ] };
    my $answer = $client->post("$base/chat/completions", "content-type" => "application/json", Content => $json->encode($asked));
    print $answer->content, "\n";
    exit 1 unless $answer->is_success;
}
